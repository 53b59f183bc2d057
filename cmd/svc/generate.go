package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// generateCommand prints what packages bring with the program, from the table of commands and options.
type generateCommand struct {
	What string `arg:"" enum:"bash,zsh,fish,man" help:"Completion for bash, zsh or fish; man: the manual page."`
}

func (c *generateCommand) Run(p program) error {
	return generate(p.out, c.What)
}

func generate(w io.Writer, what string) error {
	parser, err := newParser(program{getenv: func(string) (string, bool) { return "", false }, out: io.Discard, err: io.Discard})
	if err != nil {
		return err
	}
	m := manual{general: visible(parser.Model.Flags)}
	m.add(parser.Model.Node, nil)
	var text string
	switch what {
	case "bash":
		text = m.bash()
	case "zsh":
		text = m.zsh()
	case "fish":
		text = m.fish()
	case "man":
		text = m.page(parser.Model.Help)
	default:
		return errors.New("nothing is made for " + what)
	}
	_, err = io.WriteString(w, text)
	return err
}

// manual is the table of commands.
type manual struct {
	general  []*kong.Flag // of every command
	commands []manualCommand
}

type manualCommand struct {
	names []string // segment, verify
	node  *kong.Node
}

func (c manualCommand) flags() []*kong.Flag { return visible(c.node.Flags) }

// serves reports whether the command is the one that runs where none is named.
func (c manualCommand) serves() bool { return c.node.Name == serveName }

// add adds the commands below a node, each behind the one that it belongs to.
func (m *manual) add(n *kong.Node, above []string) {
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		names := append(slices.Clone(above), child.Name)
		m.commands = append(m.commands, manualCommand{names, child})
		m.add(child, names)
	}
}

func visible(flags []*kong.Flag) []*kong.Flag {
	return slices.DeleteFunc(slices.Clone(flags), func(f *kong.Flag) bool { return f.Hidden })
}

// below are the names of the commands directly below one.
func (m *manual) below(names ...string) []string {
	var list []string
	for _, c := range m.commands {
		if len(c.names) == len(names)+1 && slices.Equal(c.names[:len(names)], names) {
			list = append(list, c.names[len(names)])
		}
	}
	return list
}

// takesValue reports whether an option is followed by a value; takesPath whether that is the name of a file or directory.
func takesValue(f *kong.Flag) bool { return !f.IsBool() }
func takesPath(f *kong.Flag) bool  { return f.PlaceHolder == "FILE" || f.PlaceHolder == "DIR" }

// takesFile reports whether the command is followed by the name of a file.
func (c manualCommand) takesFile() bool {
	return slices.ContainsFunc(c.node.Positional, func(p *kong.Positional) bool { return p.Name == "file" || p.Name == "path" })
}

func dashed(flags []*kong.Flag) []string {
	var list []string
	for _, f := range flags {
		list = append(list, "--"+f.Name)
	}
	return list
}

const generated = "made by svc generate: change the table of options instead"

// bash returns the completion for bash.
func (m *manual) bash() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# completion of svc for bash, %s\n_svc() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= word\n", generated)
	b.WriteString("\tCOMPREPLY=()\n\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n\t\tcase \"$command/$word\" in\n")
	for _, c := range m.commands {
		above, last := strings.Join(c.names[:len(c.names)-1], " "), c.names[len(c.names)-1]
		fmt.Fprintf(&b, "\t\t'%s/%s') command='%s' ;;\n", above, last, strings.Join(c.names, " "))
	}
	b.WriteString("\t\tesac\n\tdone\n\tcase $prev in\n")
	var paths, others []string
	for _, c := range m.commands {
		for _, f := range c.flags() {
			switch {
			case f.Enum != "":
				fmt.Fprintf(&b, "\t--%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", f.Name, strings.Join(f.EnumSlice(), " "))
			case takesPath(f):
				paths = append(paths, "--"+f.Name)
			case takesValue(f):
				others = append(others, "--"+f.Name)
			}
		}
	}
	fmt.Fprintf(&b, "\t%s) compopt -o default; return ;;\n", strings.Join(paths, "|"))
	fmt.Fprintf(&b, "\t%s) return ;;\n\tesac\n\tcase $command in\n", strings.Join(others, "|"))
	for _, c := range m.commands {
		words := append(m.below(c.names...), dashed(append(c.flags(), m.general...))...)
		pattern := "'" + strings.Join(c.names, " ") + "'"
		if c.serves() {
			fmt.Fprintf(&b, "\t'') COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n", strings.Join(append(m.below(), words...), " "))
		}
		extra := ""
		if c.takesFile() {
			extra = "compopt -o default; "
		}
		fmt.Fprintf(&b, "\t%s) %sCOMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n", pattern, extra, strings.Join(words, " "))
	}
	b.WriteString("\tesac\n}\ncomplete -F _svc svc\n")
	return b.String()
}

// zsh returns the completion for zsh.
func (m *manual) zsh() string {
	var b strings.Builder
	quote := strings.NewReplacer("'", `'\''`, "[", `\[`, "]", `\]`, ":", `\:`)
	options := func(indent string, flags []*kong.Flag) {
		for _, f := range flags {
			value := ""
			switch {
			case f.Enum != "":
				value = fmt.Sprintf(":%s:(%s)", f.PlaceHolder, strings.Join(f.EnumSlice(), " "))
			case takesPath(f):
				value = ":" + f.PlaceHolder + ":_files"
			case takesValue(f):
				value = ":" + f.PlaceHolder + ": "
			}
			sign := ""
			if value != "" {
				sign = "="
			}
			fmt.Fprintf(&b, " \\\n%s'--%s%s[%s]%s'", indent, f.Name, sign, quote.Replace(f.Help), value)
		}
	}
	fmt.Fprintf(&b, "#compdef svc\n# completion of svc for zsh, %s\n_svc() {\n\tlocal command= word\n\tfor word in ${words[2,CURRENT-1]}; do\n\t\tcase \"$command/$word\" in\n", generated)
	for _, c := range m.commands {
		above, last := strings.Join(c.names[:len(c.names)-1], " "), c.names[len(c.names)-1]
		fmt.Fprintf(&b, "\t\t'%s/%s') command='%s' ;;\n", above, last, strings.Join(c.names, " "))
	}
	b.WriteString("\t\tesac\n\tdone\n\tcase $command in\n")
	for _, c := range m.commands {
		pattern := "'" + strings.Join(c.names, " ") + "'"
		names := m.below(c.names...)
		if c.serves() {
			pattern, names = "''|"+pattern, m.below()
		}
		fmt.Fprintf(&b, "\t%s)\n\t\t_arguments", pattern)
		options("\t\t\t", append(c.flags(), m.general...))
		switch {
		case len(names) > 0:
			fmt.Fprintf(&b, " \\\n\t\t\t'*:command:(%s)'", strings.Join(names, " "))
		case c.takesFile():
			b.WriteString(" \\\n\t\t\t'*:file:_files'")
		}
		b.WriteString("\n\t\t;;\n")
	}
	b.WriteString("\tesac\n}\n_svc \"$@\"\n")
	return b.String()
}

// fish returns the completion for fish.
func (m *manual) fish() string {
	var b strings.Builder
	quote := strings.NewReplacer(`\`, `\\`, "'", `\'`)
	fmt.Fprintf(&b, "# completion of svc for fish, %s\ncomplete -c svc -f\n", generated)
	for _, f := range m.general {
		fmt.Fprintf(&b, "complete -c svc -l %s -d '%s'\n", f.Name, quote.Replace(f.Help))
	}
	others := slices.DeleteFunc(m.below(), func(name string) bool { return name == serveName })
	for _, c := range m.commands {
		// where the command may be named, and where its options may
		place := "__fish_use_subcommand"
		if above := c.names[:len(c.names)-1]; len(above) > 0 {
			place = fmt.Sprintf("__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from %s", above[len(above)-1], strings.Join(m.below(above...), " "))
		}
		fmt.Fprintf(&b, "complete -c svc -n '%s' -a %s -d '%s'\n", place, c.names[len(c.names)-1], quote.Replace(c.node.Help))
		behind := "__fish_seen_subcommand_from " + c.names[len(c.names)-1]
		if c.serves() {
			behind = "not __fish_seen_subcommand_from " + strings.Join(others, " ")
		}
		if c.takesFile() {
			fmt.Fprintf(&b, "complete -c svc -n '%s' -F\n", behind)
		}
		for _, f := range c.flags() {
			value := ""
			switch {
			case f.Enum != "":
				value = " -x -a '" + strings.Join(f.EnumSlice(), " ") + "'"
			case takesPath(f):
				value = " -r -F"
			case takesValue(f):
				value = " -x"
			}
			fmt.Fprintf(&b, "complete -c svc -n '%s' -l %s%s -d '%s'\n", behind, f.Name, value, quote.Replace(f.Help))
		}
	}
	return b.String()
}

// page returns the manual page, in the macros of man(7).
func (m *manual) page(about string) string {
	var b strings.Builder
	text := func(s string) string {
		s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
		if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
			s = `\&` + s
		}
		return s
	}
	fmt.Fprintf(&b, ".\\\" %s\n.TH SVC 1 \"\" \"svc %s\"\n.SH NAME\nsvc \\- search engine over HTTP\n.SH SYNOPSIS\n.B svc\n[\\fIcommand\\fR] [\\fIoptions\\fR]\n.SH DESCRIPTION\n%s\n.SH COMMANDS\n", generated, svcVersion, text(about))
	for _, c := range m.commands {
		if len(m.below(c.names...)) > 0 {
			continue
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", text("svc "+strings.Join(c.names, " ")), text(c.node.Help))
		for _, p := range c.node.Positional {
			fmt.Fprintf(&b, ".RS\n.TP\n.I %s\n%s\n.RE\n", text(p.Name), text(p.Help))
		}
		if !c.serves() {
			for _, f := range c.flags() {
				fmt.Fprintf(&b, ".RS\n.TP\n.BI %s\n%s\n.RE\n", text("--"+f.Name)+" ="+text(f.PlaceHolder), text(f.Help))
			}
		}
	}
	b.WriteString(".SH OPTIONS\nThose of every command:\n")
	for _, f := range m.general {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", text("--"+f.Name), text(f.Help))
	}
	for _, c := range m.commands {
		if !c.serves() {
			continue
		}
		flags := c.flags()
		var order []string // of groups, by their first options
		for _, f := range flags {
			if !slices.Contains(order, f.Group.Title) {
				order = append(order, f.Group.Title)
			}
		}
		slices.SortStableFunc(flags, func(a, b *kong.Flag) int {
			return slices.Index(order, a.Group.Title) - slices.Index(order, b.Group.Title)
		})
		group := ""
		for _, f := range flags {
			if f.Group.Title != group {
				group = f.Group.Title
				fmt.Fprintf(&b, ".SS %s\n", text(strings.TrimSuffix(group, ":")))
			}
			value := ""
			if takesValue(f) {
				value = `=\fI` + text(f.PlaceHolder) + `\fR`
			}
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR%s\n%s\n", text("--"+f.Name), value, text(withVariable(f.Value)))
		}
	}
	b.WriteString(".SH EXIT STATUS\n0: stopped by a signal, or done. 1: it could not be done. 2: an option or a variable is wrong.\n")
	return b.String()
}
