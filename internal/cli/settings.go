package cli

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/tutti-project/tutti/internal/fault"
)

// settable describes the settings of a program that runs: a struct whose fields have the
// tags koanf (the key) and help. Each is a key in a file, a variable and a flag. The tag bare
// is what the flag of a text means without a value.
type settable struct {
	defaults any      // the struct
	command  string   // whose --help lists them
	prefix   string   // of the variables
	foreign  []string // variables with that prefix that are no settings; one that ends in _ stands for all that begin so
	shared   []string // settings whose variables other commands read, too: a file that a flag names wins over them
	// rewrite may change what a file says, for names that other programs gave the settings; nil: nothing.
	rewrite func(map[string]any) (map[string]any, error)
}

// flags gives flags one flag for each setting.
func (s settable) flags(flags *pflag.FlagSet) {
	for field, value := range reflect.ValueOf(s.defaults).Fields() {
		name, help := flagName(field.Tag.Get("koanf")), field.Tag.Get("help")
		switch v := value.Interface().(type) {
		case string:
			flags.String(name, v, help)
			flags.Lookup(name).NoOptDefVal = field.Tag.Get("bare")
		case float64:
			flags.Float64(name, v, help)
		case bool:
			flags.Bool(name, v, help)
		case int:
			flags.Int(name, v, help)
		case int64:
			flags.Int64(name, v, help)
		case time.Duration:
			d := durationFlag(v)
			flags.Var(&d, name, help)
		case []string:
			flags.StringSlice(name, v, help)
		default:
			panic(fmt.Sprintf("setting %s has type %T, which no flag has", name, v))
		}
	}
}

func flagName(key string) string { return strings.ReplaceAll(key, "_", "-") }

// keys lists every setting.
func (s settable) keys() []string {
	var keys []string
	for field := range reflect.TypeOf(s.defaults).Fields() {
		keys = append(keys, field.Tag.Get("koanf"))
	}
	return keys
}

// load reads the settings into config, which holds the defaults: the file, if there is a path, then variables,
// then flags. A name that is no setting is an error that names the nearest place to mend it.
func (s settable) load(a *app, path string, flags *pflag.FlagSet, config any) error {
	all := koanf.New(".")
	if path != "" {
		if err := s.loadFile(all, path); err != nil {
			return err
		}
	}
	variables, given := s.fromEnvironment(a), s.fromFlags(flags)
	s.settle(a, settingsFile{all, path, flags.Changed("config")}, variables, given)
	if err := all.Load(confmap.Provider(variables, ""), nil); err != nil {
		return err
	}
	if err := all.Load(confmap.Provider(given, ""), nil); err != nil {
		return err
	}
	err := all.UnmarshalWithConf("", config, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Result: config, TagName: "koanf", WeaklyTypedInput: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(textToDuration, mapstructure.StringToSliceHookFunc(","), boolToText),
	}})
	if err != nil {
		return fault.New(fault.Invalid, "settings: %v", err)
	}
	return nil
}

// textToDuration reads durations as the command line does.
func textToDuration(from, to reflect.Type, value any) (any, error) {
	if text, ok := value.(string); ok && from.Kind() == reflect.String && to == reflect.TypeFor[time.Duration]() {
		return parseDuration(text)
	}
	return value, nil
}

// settingsFile is a file of settings.
type settingsFile struct {
	*koanf.Koanf
	path  string
	named bool // by a flag, not by a variable
}

// settle takes out the variables over which the file wins, and says which of the two wins wherever they differ and no flag decides.
func (s settable) settle(a *app, from settingsFile, variables, flags map[string]any) {
	for _, key := range s.keys() {
		value, set := variables[key]
		if _, decided := flags[key]; !set || decided || !from.Exists(key) || sameSetting(from.Get(key), value) {
			continue
		}
		variable := s.prefix + strings.ToUpper(key)
		if slices.Contains(s.shared, key) && from.named {
			delete(variables, key)
			a.hint("%s=%v is not used: --config %s says %s: %v", variable, value, from.path, key, from.Get(key))
			continue
		}
		if slices.Contains(s.shared, key) {
			a.hint("%s=%v is used, and not %s: %v of %s", variable, value, key, from.Get(key), from.path)
			continue
		}
		a.hint("%s is used, and not %s of %s", variable, key, from.path) // the values may be secret
	}
}

// sameSetting compares a value of a file with the text of a variable.
func sameSetting(file, variable any) bool {
	if list, ok := file.([]any); ok {
		texts := make([]string, len(list))
		for i, item := range list {
			texts[i] = fmt.Sprint(item)
		}
		file = strings.Join(texts, ",")
	}
	return fmt.Sprint(file) == fmt.Sprint(variable)
}

// boolToText gives a setting that is a text the words true and false, which a file may say without quotes.
func boolToText(_, to reflect.Kind, value any) (any, error) {
	if given, ok := value.(bool); ok && to == reflect.String {
		return strconv.FormatBool(given), nil
	}
	return value, nil
}

func (s settable) loadFile(all *koanf.Koanf, path string) error {
	text, err := readWhole(path, maxNamedBytes)
	switch _, large := errors.AsType[tooLarge](err); {
	case errors.Is(err, os.ErrNotExist):
		return fault.New(fault.Invalid, "there is no configuration file %s", path)
	case large:
		return fault.New(fault.Invalid, "configuration file %s: %v; is it the right file?", path, err)
	case err != nil:
		return fault.New(fault.Invalid, "configuration file %s: %v", path, err)
	}
	values, err := yaml.Parser().Unmarshal(text)
	if err != nil {
		return fault.New(fault.Invalid, "configuration file %s: %v", path, err)
	}
	one := koanf.New(".")
	if err := one.Load(confmap.Provider(values, ""), nil); err != nil {
		return fault.New(fault.Invalid, "configuration file %s: %v", path, err)
	}
	found := one.All()
	if s.rewrite != nil {
		if found, err = s.rewrite(found); err != nil {
			return fault.New(fault.Invalid, "configuration file %s: %s", path, fault.Detail(err))
		}
	}
	known := s.keys()
	for key := range found {
		if !slices.Contains(known, key) {
			return fault.New(fault.Invalid, "configuration file %s: there is no setting %q; `%s --help` lists them", path, key, s.command)
		}
	}
	return all.Load(confmap.Provider(found, ""), nil)
}

// fromEnvironment collects the variables that are settings. Others are
// left alone: a variable may be meant for another version or another program.
func (s settable) fromEnvironment(a *app) map[string]any {
	known, found := s.keys(), map[string]any{}
	for _, entry := range a.system.Env {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, s.prefix) || s.isForeign(name) {
			continue
		}
		key := strings.ToLower(strings.TrimPrefix(name, s.prefix))
		if slices.Contains(known, key) {
			found[key] = value
		} else {
			a.hint("%s is set, but there is no such setting; it is ignored", name)
		}
	}
	return found
}

func (s settable) isForeign(name string) bool {
	return slices.ContainsFunc(s.foreign, func(other string) bool {
		return name == other || strings.HasSuffix(other, "_") && strings.HasPrefix(name, other)
	})
}

// fromFlags collects the settings whose flag was given.
func (s settable) fromFlags(flags *pflag.FlagSet) map[string]any {
	known, found := s.keys(), map[string]any{}
	flags.Visit(func(flag *pflag.Flag) {
		key := strings.ReplaceAll(flag.Name, "-", "_")
		if !slices.Contains(known, key) {
			return
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			found[key] = list.GetSlice()
			return
		}
		found[key] = flag.Value.String()
	})
	return found
}
