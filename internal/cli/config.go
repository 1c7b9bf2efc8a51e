package cli

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/server"
)

// clientVariables are TUTTI_* variables that are not settings of the server.
var clientVariables = []string{"TUTTI_SERVER", "TUTTI_TOKEN", "TUTTI_TOKEN_FILE", "TUTTI_CA_FILE", "TUTTI_CONFIG"}

// settingFlags gives flags one flag for each setting of server.Config.
func settingFlags(flags *pflag.FlagSet) {
	defaults := reflect.ValueOf(server.Default())
	for field, value := range defaults.Fields() {
		name, help := flagName(field.Tag.Get("koanf")), field.Tag.Get("help")
		switch v := value.Interface().(type) {
		case string:
			flags.String(name, v, help)
		case float64:
			flags.Float64(name, v, help)
		case bool:
			flags.Bool(name, v, help)
		case int:
			flags.Int(name, v, help)
		case int64:
			flags.Int64(name, v, help)
		case time.Duration:
			flags.Duration(name, v, help)
		case []string:
			flags.StringSlice(name, v, help)
		default:
			panic(fmt.Sprintf("setting %s has type %T, which no flag has", name, v))
		}
	}
}

func flagName(key string) string { return strings.ReplaceAll(key, "_", "-") }

// loadConfig reads the settings: defaults, then the file, then TUTTI_*
// variables, then flags. A name that is no setting is an error that names the
// nearest place to mend it.
func (a *app) loadConfig(path string, flags *pflag.FlagSet) (server.Config, error) {
	config, settings := server.Default(), koanf.New(".")
	if path != "" {
		if err := settings.Load(file.Provider(path), yaml.Parser()); err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return config, fault.New(fault.Invalid, "there is no configuration file %s", path)
			}
			return config, fault.New(fault.Invalid, "configuration file %s: %v", path, err)
		}
		if err := onlySettings(settings.Keys(), "configuration file "+path); err != nil {
			return config, err
		}
	}
	if err := settings.Load(confmap.Provider(a.fromEnvironment(), ""), nil); err != nil {
		return config, err
	}
	if err := settings.Load(confmap.Provider(fromFlags(flags), ""), nil); err != nil {
		return config, err
	}
	err := settings.UnmarshalWithConf("", &config, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Result: &config, TagName: "koanf", WeaklyTypedInput: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(mapstructure.StringToTimeDurationHookFunc(), mapstructure.StringToSliceHookFunc(",")),
	}})
	if err != nil {
		return config, fault.New(fault.Invalid, "settings: %v", err)
	}
	return config, config.Check()
}

// settingKeys lists every key of server.Config.
func settingKeys() []string {
	var keys []string
	for field := range reflect.TypeFor[server.Config]().Fields() {
		keys = append(keys, field.Tag.Get("koanf"))
	}
	return keys
}

func onlySettings(keys []string, where string) error {
	known := settingKeys()
	for _, key := range keys {
		if !slices.Contains(known, key) {
			return fault.New(fault.Invalid, "%s: there is no setting %q; `tutti server --help` lists them", where, key)
		}
	}
	return nil
}

// fromEnvironment collects the TUTTI_* variables that are settings. Others are
// left alone: a variable may be meant for another version or another program.
func (a *app) fromEnvironment() map[string]any {
	known, found := settingKeys(), map[string]any{}
	for _, entry := range a.system.Env {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "TUTTI_") || slices.Contains(clientVariables, name) {
			continue
		}
		key := strings.ToLower(strings.TrimPrefix(name, "TUTTI_"))
		if slices.Contains(known, key) {
			found[key] = value
		} else {
			a.hint("%s is set, but there is no such setting; it is ignored", name)
		}
	}
	return found
}

// fromFlags collects the settings whose flag was given.
func fromFlags(flags *pflag.FlagSet) map[string]any {
	known, found := settingKeys(), map[string]any{}
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
