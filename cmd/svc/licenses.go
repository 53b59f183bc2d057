package main

import (
	"fmt"
	"io"
	"os"

	"svc/docs/demo"
	"svc/internal/text"
)

// licensesCommand prints under which terms the word lists, the lexicons and the libraries of pages in the program are.
type licensesCommand struct {
	GermanWords bool `name:"german-words" help:"Print the published list of parts of German compounds instead. SVC_GERMAN_WORDS can name another such file."`
}

func (c *licensesCommand) Run(p program) error {
	print := text.Licenses() + demo.Licenses()
	if c.GermanWords {
		print = text.GermanWords()
	}
	_, err := io.WriteString(p.out, print)
	return err
}

// germanVariable names a file with the parts of German compounds that replaces those of the program.
const germanVariable = "SVC_GERMAN_WORDS"

// replaceGermanWords reads that file, if one is named.
func (p program) replaceGermanWords() error {
	name, _ := p.getenv(germanVariable)
	if name == "" {
		return nil
	}
	list, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("%s: %w", germanVariable, err)
	}
	text.UseGermanWords(string(list))
	return nil
}
