package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"unicode"
)

// settingsCommand shows, changes and resets settings.
type settingsCommand struct {
	Show  settingsShowCommand  `cmd:"" help:"Print settings as JSON."`
	Set   settingsSetCommand   `cmd:"" help:"Change settings and wait until searches use them."`
	Reset settingsResetCommand `cmd:"" help:"Reset settings to their defaults and wait until searches use them."`
}

type settingsShowCommand struct {
	Index string   `arg:"" help:"Name of the index."`
	Names []string `arg:"" optional:"" help:"Settings, such as rankingRules or ranking-rules (default: all)."`

	remoteOptions `embed:""`
}

func (c *settingsShowCommand) Run(p program) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := to.Call(ctx, http.MethodGet, settingsPath(c.Index), nil, &all); err != nil {
		return err
	}
	if len(c.Names) == 0 {
		return printJSON(p.out, all)
	}
	for _, name := range c.Names {
		value, ok := all[memberName(name)]
		if !ok {
			return fmt.Errorf("no setting is named %s", name)
		}
		if err := printJSON(p.out, value); err != nil {
			return err
		}
	}
	return nil
}

type settingsSetCommand struct {
	Index string `arg:"" help:"Name of the index."`
	Name  string `arg:"" optional:"" help:"Setting, such as rankingRules or ranking-rules."`
	Value string `arg:"" optional:"" help:"Value as JSON. A string needs no quotes."`

	remoteOptions `embed:""`

	File string `name:"file" placeholder:"FILE" help:"JSON object of settings to change, instead of one setting; - is standard input."`
}

func (c *settingsSetCommand) Run(p program) error {
	if (c.File == "") == (c.Name == "") || c.Name != "" && c.Value == "" {
		return errors.New("nothing to change: give a setting and its value, or --file with an object of settings")
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	return c.do(p, http.MethodPatch, settingsPath(c.Index), body)
}

// body returns the settings to send: those of a file, or one setting. A value that is not JSON is a string.
func (c *settingsSetCommand) body() (any, error) {
	if c.File == "" {
		value := json.RawMessage(c.Value)
		if !json.Valid(value) {
			value, _ = json.Marshal(c.Value) // a string
		}
		return map[string]any{memberName(c.Name): value}, nil
	}
	in := os.Stdin
	if c.File != "-" {
		var err error
		if in, err = os.Open(c.File); err != nil {
			return nil, err
		}
		defer in.Close()
	}
	b, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", c.File, err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("%s must hold a JSON object of settings: %w", c.File, err)
	}
	return all, nil
}

type settingsResetCommand struct {
	Index string   `arg:"" help:"Name of the index."`
	Names []string `arg:"" optional:"" help:"Settings, such as rankingRules or ranking-rules (default: all)."`

	remoteOptions `embed:""`
}

func (c *settingsResetCommand) Run(p program) error {
	if len(c.Names) == 0 {
		return c.do(p, http.MethodDelete, settingsPath(c.Index), nil)
	}
	body := map[string]any{}
	for _, name := range c.Names {
		body[memberName(name)] = nil
	}
	return c.do(p, http.MethodPatch, settingsPath(c.Index), body)
}

func settingsPath(index string) string { return "/indexes/" + url.PathEscape(index) + "/settings" }

// memberName returns the JSON name of a setting that is written in camel case or, as in paths, with hyphens.
func memberName(name string) string {
	var b strings.Builder
	upper := false
	for _, r := range name {
		if r == '-' {
			upper = true
			continue
		}
		if upper {
			r, upper = unicode.ToUpper(r), false
		}
		b.WriteRune(r)
	}
	return b.String()
}
