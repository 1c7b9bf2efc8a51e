package cli

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// References returns the reference pages that docs/reference holds, by file
// name: they are made from the same tables that the program runs on.
func References() map[string]string {
	return map[string]string{
		"cli.md":           commandReference(),
		"api.md":           operationReference(),
		"configuration.md": settingReference(),
		"openapi.json":     describedOperations(),
	}
}

// describedOperations is the document that the server gives, too.
func describedOperations() string {
	text, err := api.OpenAPI()
	if err != nil {
		panic(err) // it is made of strings and numbers
	}
	return string(text) + "\n"
}

const generated = "<!-- Written by `make generate`; do not edit. -->\n\n"

func commandReference() string {
	var text strings.Builder
	text.WriteString("# Command line\n\n" + generated)
	text.WriteString("Exit codes: 0 done, 1 failed, 2 wrong usage, 4 some nodes of a job failed, 5 refused because it conflicts with what is there, or by nodes, 6 nodes were offline or took too long, 7 no right, 8 server not reachable, 130 interrupted.\n")
	text.WriteString("\nEvery command takes `--quiet`, `--color` and `--help`. Those that ask a server take `--server`, `--token-file`, `--ca-file` and `--data`, too. " +
		"Those that print a list (`-o wide` is one of their forms) take `--columns`, `--sort` and `--watch`; see [what commands print](../output.md).\n")
	a := &app{}
	describe(&text, a.root())
	return text.String()
}

func describe(text *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
		return
	}
	if cmd.Runnable() && (!cmd.HasSubCommands() || cmd.Example != "") { // nouns only list what is below them
		fmt.Fprintf(text, "\n## %s\n\n%s.\n\n```\n%s\n```\n", cmd.CommandPath(), cmd.Short, cmd.UseLine())
		if cmd.Long != "" {
			fmt.Fprintf(text, "\n%s\n", fenced(cmd.Long))
		}
		if cmd.Example != "" {
			fmt.Fprintf(text, "\n```\n%s\n```\n", cmd.Example)
		}
		if flags := flagTable(cmd); flags != "" && cmd.Name() != "server" {
			fmt.Fprintf(text, "\n| flag | default | meaning |\n|---|---|---|\n%s", flags)
		}
	}
	for _, sub := range cmd.Commands() {
		describe(text, sub)
	}
}

// fenced keeps a long text's layout.
func fenced(long string) string { return "```\n" + long + "\n```" }

func flagTable(cmd *cobra.Command) string {
	var rows strings.Builder
	cmd.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
		name := "`--" + flag.Name + "`"
		if flag.Shorthand != "" {
			name = "`-" + flag.Shorthand + "`, " + name
		}
		if shared := []string{"help", "columns", "sort", "watch"}; !slices.Contains(shared, flag.Name) {
			fmt.Fprintf(&rows, "| %s | %s | %s |\n", name, inline(flag.DefValue), flag.Usage)
		}
	})
	return rows.String()
}

func inline(text string) string {
	if text == "" || text == "[]" {
		return ""
	}
	return "`" + text + "`"
}

func operationReference() string {
	var text strings.Builder
	text.WriteString("# HTTP API\n\n" + generated)
	text.WriteString("Base path `" + api.Prefix + "`. Show a token (`Authorization: Bearer TOKEN`) or an administrator's client certificate.\n" +
		"Times are RFC 3339, sizes bytes. Errors have the body `Problem`.\n\n" +
		"| operation | request | permission | what it does |\n|---|---|---|---|\n")
	types := map[string]reflect.Type{}
	for _, op := range api.Operations() {
		fmt.Fprintf(&text, "| `%s` | `%s %s` | `%s` | %s |\n", op.Name, op.Method, op.Path, op.Permission, op.Summary)
	}
	for _, op := range api.Operations() {
		fmt.Fprintf(&text, "\n## %s\n\n`%s %s%s`: %s.\n", op.Name, op.Method, api.Prefix, op.Path, op.Summary)
		if op.Request != nil {
			text.WriteString("\nRequest: " + typeName(op.Request, types) + "\n")
		}
		if op.Uploads() {
			text.WriteString("\nRequest: the body is a stream of bytes, `" + op.Media + "`.\n")
		}
		if op.Response != nil {
			text.WriteString("\nAnswer: " + typeName(op.Response, types) + "\n")
		}
	}
	text.WriteString("\n# Types\n")
	typeName(reflect.TypeFor[api.Problem](), types)
	for _, name := range slices.Sorted(maps.Keys(types)) {
		writeType(&text, name, types[name], types)
	}
	return text.String()
}

// typeName is how a type is called in the reference; structs are collected.
func typeName(t reflect.Type, types map[string]reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return typeName(t.Elem(), types)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return "list of " + typeName(t.Elem(), types)
	case t.Kind() == reflect.Map:
		return "object of " + typeName(t.Elem(), types)
	case t.String() == "time.Time":
		return "time"
	case t.String() == "json.RawMessage":
		return "any JSON"
	case t.Kind() == reflect.Struct:
		name := t.Name()
		if generic, _, ok := strings.Cut(name, "["); ok {
			return "`" + generic + "` of " + typeName(t.Field(0).Type.Elem(), types)
		}
		if _, seen := types[name]; !seen {
			types[name] = t
			for field := range t.Fields() {
				typeName(field.Type, types)
			}
		}
		return "`" + name + "`"
	}
	return t.Kind().String()
}

func writeType(text *strings.Builder, name string, t reflect.Type, types map[string]reflect.Type) {
	fmt.Fprintf(text, "\n### %s\n\n| field | in | type |\n|---|---|---|\n", name)
	writeFields(text, t, types)
}

// writeFields lists fields, those of embedded types, too.
func writeFields(text *strings.Builder, t reflect.Type, types map[string]reflect.Type) {
	for field := range t.Fields() {
		if field.Anonymous {
			writeFields(text, field.Type, types)
		}
		for _, where := range []string{"path", "query", "json"} {
			if tag, ok := field.Tag.Lookup(where); ok {
				key, _, _ := strings.Cut(tag, ",")
				fmt.Fprintf(text, "| `%s` | %s | %s |\n", key, map[string]string{"path": "path", "query": "query", "json": "body"}[where], typeName(field.Type, types))
			}
		}
	}
}

func settingReference() string {
	var text strings.Builder
	text.WriteString("# Configuration of the server\n\n" + generated)
	text.WriteString("One name in three spellings: `ca_key_type` in the file, `TUTTI_CA_KEY_TYPE` in the environment, `--ca-key-type` as a flag. " +
		"The flag wins, then the environment, then the file; a file that `--config` names wins over `TUTTI_DATA`, which a shell may have for other commands. " +
		"Where the environment and the file differ, the server says which one it uses. Settings marked * follow `SIGHUP`.\n\n| setting | default | meaning |\n|---|---|---|\n")
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	serverSettings().flags(flags)
	for field := range reflect.TypeFor[settings.Config]().Fields() {
		key, star := field.Tag.Get("koanf"), ""
		if field.Tag.Get("reload") != "" {
			star = " *"
		}
		fmt.Fprintf(&text, "| `%s`%s | %s | %s |\n", key, star, inline(flags.Lookup(flagName(key)).DefValue), field.Tag.Get("help"))
	}
	return text.String()
}
