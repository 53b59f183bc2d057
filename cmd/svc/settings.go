package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/pelletier/go-toml/v2"

	"svc/internal/apierr"
	"svc/internal/outbound"
)

const (
	envPrefix = "SVC_"
	// movedPrefix is the prefix of the product from which deployments migrate; its variables are read if svc's own are not set.
	movedPrefix = "MEILI_"

	configFlag    = "config-file-path"
	defaultConfig = "./config.toml"
)

// configError is an error in the configuration file.
type configError struct {
	file string
	err  error
}

func (e *configError) Error() string {
	return fmt.Sprintf("cannot use the configuration file %s: %v", e.file, e.err)
}
func (e *configError) Unwrap() error { return e.err }

// settings resolves the flags that the command line does not set: from the environment, then from the configuration file.
type settings struct {
	getenv func(string) (string, bool)

	file   string         // "": not searched for yet
	values map[string]any // of the file
}

// Validate is part of kong.Resolver. What the values must be is checked where they are read.
func (*settings) Validate(*kong.Application) error { return nil }

// checkVariables refuses variables that look like the server's own and are not: a misspelt SVC_MASTER_KEY would leave
// everything open.
func (p program) checkVariables(ctx *kong.Context) error {
	if p.environ == nil {
		return nil
	}
	known := slices.Clone(otherVariables)
	for _, f := range ctx.Flags() {
		known = append(known, variableName(f.Name))
	}
	for _, pair := range p.environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(known, name) || linked.MatchString(name) {
			continue
		}
		if meant := apierr.Closest(name, known); meant != "" {
			return fmt.Errorf("the variable %s is unknown: did you mean %s?", name, meant)
		}
		return fmt.Errorf("the variable %s is unknown; svc --help lists all variables", name)
	}
	return nil
}

// otherVariables are the variables without an option.
var otherVariables = []string{
	"SVC_SIMD", germanVariable, keyVariable, "SVC_EXPERIMENTAL_CONFIG_EMBEDDER_FAILURE_MODES", "SVC_EXPERIMENTAL_DISABLE_FID_BASED_DATABASES_CLEANUP",
}

// linked matches the variables that Kubernetes sets in containers for a service whose name begins with "svc".
var linked = regexp.MustCompile(`^SVC_([A-Z0-9_]+_)?(SERVICE_(HOST|PORT[A-Z0-9_]*)|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// Resolve returns the value of a flag, or nil if none is set.
func (s *settings) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if flag.Name == "help" || flag.Name == "version" || !serves(ctx) {
		return nil, nil
	}
	if v, name, ok := s.variable(flag.Name); ok {
		return fromEnvironment(v, name, flag)
	}
	if flag.Name == configFlag {
		return nil, nil
	}
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	key := fileKey(flag.Name)
	v, ok := s.values[key]
	if !ok {
		return nil, nil
	}
	if err := checkType(v, flag); err != nil {
		return nil, &configError{s.file, fmt.Errorf("%s: %w", key, err)}
	}
	switch v := v.(type) { // every option reads text
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return fmt.Sprint(v), nil
	case []any:
		return strings.Join(texts(v), ","), nil
	}
	return v, nil
}

// serves reports whether the command line asks for the server, which the options are for.
func serves(ctx *kong.Context) bool {
	node := ctx.Selected()
	return node != nil && node.Name == serveName
}

// variable looks a flag up in the environment.
func (s *settings) variable(flag string) (value, name string, ok bool) {
	name = variableName(flag)
	for _, name := range [...]string{name, movedPrefix + strings.TrimPrefix(name, envPrefix)} {
		if value, ok = s.getenv(name); ok {
			return value, name, true
		}
	}
	return "", "", false
}

// variableName is the name of a flag in the environment.
func variableName(flag string) string { return envPrefix + strings.ToUpper(fileKey(flag)) }

func fileKey(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

func fromEnvironment(v, name string, flag *kong.Flag) (any, error) {
	if !flag.IsBool() || isSchedule(flag) {
		return v, nil
	}
	switch v {
	case "true", "false":
		return v == "true", nil
	}
	return nil, fmt.Errorf("%s must be true or false, but it is %q", name, v)
}

// load reads the configuration file, once.
func (s *settings) load(ctx *kong.Context) error {
	if s.file != "" {
		return nil
	}
	s.file = defaultConfig
	named := false
	if v, _, ok := s.variable(configFlag); ok {
		s.file, named = v, true
	}
	for _, element := range ctx.Path {
		if element.Flag != nil && element.Flag.Name == configFlag && !element.Resolved {
			s.file, named = ctx.FlagValue(element.Flag).(string), true
		}
	}
	b, err := os.ReadFile(s.file)
	if err != nil {
		if !named && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return &configError{s.file, err}
	}
	if err := toml.Unmarshal(b, &s.values); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			row, column := at.Position()
			err = fmt.Errorf("line %d, column %d: %w", row, column, err)
		}
		return &configError{s.file, err}
	}
	var known []string
	for _, f := range ctx.Flags() {
		if f.Name != "help" && f.Name != "version" && f.Name != configFlag {
			known = append(known, fileKey(f.Name))
		}
	}
	for key := range s.values {
		if !slices.Contains(known, key) {
			slices.Sort(known)
			if meant := apierr.Closest(key, known); meant != "" {
				return &configError{s.file, fmt.Errorf("%s is unknown: did you mean %s?", key, meant)}
			}
			if _, table := s.values[key].(map[string]any); table {
				return &configError{s.file, fmt.Errorf("the table [%s] is unknown: options stand outside of tables, as in db_path = \"data.svc\"", key)}
			}
			return &configError{s.file, fmt.Errorf("%s is unknown; svc --help lists all options", key)}
		}
	}
	return nil
}

// texts returns those elements of an array that are texts.
func texts(array []any) []string {
	var list []string
	for _, v := range array {
		if s, ok := v.(string); ok {
			list = append(list, s)
		}
	}
	return list
}

// checkType refuses a value in the file whose type differs from that of the option. Options with a text form, such as sizes, may also
// be numbers.
func checkType(v any, flag *kong.Flag) error {
	want := ""
	if isSchedule(flag) {
		switch v.(type) {
		case bool, int64:
			return nil
		}
		return fmt.Errorf("must be true, false or a number of seconds, but it is %s", typeName(v))
	}
	switch v := v.(type) {
	case bool:
		if !flag.IsBool() {
			want = "text or a number"
		}
	case int64:
		if kind := flag.Target.Kind(); flag.IsBool() || kind == reflect.String {
			want = "text"
		}
	case string:
		kind := flag.Target.Kind()
		if kind == reflect.Pointer {
			kind = flag.Target.Type().Elem().Kind()
		}
		if kind == reflect.Int {
			want = "a whole number"
		}
	case float64:
		if flag.Target.Kind() != reflect.Float64 {
			want = "text or a whole number"
		}
	case []any:
		if flag.Target.Kind() != reflect.Slice && flag.Target.Type() != reflect.TypeFor[outbound.Policy]() {
			want = "text, a number or a boolean"
		} else if len(texts(v)) < len(v) {
			want = "an array of texts"
		}
	default:
		want = "text, a number or a boolean"
	}
	if flag.IsBool() {
		want = "true or false"
		if _, ok := v.(bool); ok {
			want = ""
		}
	}
	if want == "" {
		return nil
	}
	// The value is not shown: it may be a secret.
	return fmt.Errorf("must be %s, but it is %s", want, typeName(v))
}

// typeName returns the name of the type of a value in the file.
func typeName(v any) string {
	switch v.(type) {
	case bool:
		return "a boolean"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case string:
		return "text"
	case []any:
		return "an array"
	case map[string]any:
		return "a table"
	}
	return "a date or a time"
}
