package main

import (
	"github.com/alecthomas/kong"
)

// helpCommand prints the help of a command, or of the program.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"Command, such as segment verify."`
}

// Run prints what --help behind the command prints.
func (c *helpCommand) Run(p program) error {
	parser, err := newParser(p)
	if err != nil {
		return err
	}
	if err := unknownCommand(parser, c.Command); err != nil {
		return err
	}
	ctx, err := kong.Trace(parser, append(c.Command, "--help"))
	if err != nil {
		return err
	}
	if ctx.Error != nil {
		return ctx.Error
	}
	return ctx.PrintUsage(false)
}

// printHelp prints the help of a command with its own options, or that of the program with the options of the server, which is what
// it runs without a command.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || ctx.Selected() != nil || options.Summary {
		return err
	}
	for _, f := range ctx.Model.Flags { // these have been printed
		f.Hidden = true
	}
	serve, err := kong.Trace(ctx.Kong, []string{serveName})
	if err != nil {
		return err
	}
	options.NoAppSummary = true
	return kong.DefaultHelpPrinter(options, serve)
}
