package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	inBackticks = regexp.MustCompile("`([^`\n]+)`")
	ofTutti     = regexp.MustCompile(`(?:^|[ ($])tutti((?: [a-z][a-z-]*)+)([^|;&>)]*)`)
	flagInLine  = regexp.MustCompile(`(?:^| )(--[a-z][a-z-]*|-[a-z])\b`)
	aSetting    = regexp.MustCompile(`^([a-z]+(?:_[a-z]+)+)(?:: .*)?$`)
)

// documents are the documents that people follow.
func documents(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(paths) < 40 {
		t.Fatalf("%d pages, %v", len(paths), err)
	}
	all := map[string]string{}
	for _, path := range append(paths, "../../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = string(text)
	}
	return all
}

// Every command line in a page is one that there is, with flags that it has: in tables and in text, too, which nobody runs.
func TestPagesNameCommandsThatExist(t *testing.T) {
	t.Parallel()
	named := 0
	root := (&app{}).root()
	root.InitDefaultCompletionCmd()
	for page, text := range documents(t) {
		var spans []string
		for _, span := range inBackticks.FindAllStringSubmatch(text, -1) {
			spans = append(spans, span[1])
		}
		for line := range strings.Lines(text) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				spans = append(spans, strings.TrimSpace(command))
			}
		}
		for _, span := range spans {
			for _, found := range ofTutti.FindAllStringSubmatch(span, -1) {
				if span == "tutti audit head" { // a text that is signed
					continue
				}
				named++
				if wrong := wrongCommand(root, strings.Fields(found[1]), found[2]); wrong != "" {
					t.Errorf("%s: `%s`: %s", page, span, wrong)
				}
			}
		}
	}
	if named < 400 {
		t.Errorf("pages name %d commands: this test has lost its eyes", named)
	}
}

// wrongCommand says what is wrong with a command line of tutti; empty: nothing.
func wrongCommand(cmd *cobra.Command, words []string, rest string) string {
	for i, word := range words {
		next := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == word || c.HasAlias(word) })
		if next < 0 && !cmd.Runnable() || next < 0 && cmd.HasSubCommands() && i == 0 {
			return "there is no command " + word
		}
		if next < 0 {
			if len(cmd.Commands()) > 0 && cmd.Args != nil && cmd.Args(cmd, words[i:]) != nil {
				return "there is no command " + strings.Join(words[:i+1], " ")
			}
			break
		}
		cmd = cmd.Commands()[next]
		if cmd.Hidden && cmd.Name() != "help" && cmd.Name() != "man" {
			return "it is the former name of a command"
		}
	}
	flags := cmd.Flags()
	flags.AddFlagSet(cmd.InheritedFlags())
	before, _, _ := strings.Cut(rest+" ", " -- ")
	for _, flag := range flagInLine.FindAllStringSubmatch(outsideQuotes(before), -1) {
		name := strings.TrimLeft(flag[1], "-")
		theirs := slices.ContainsFunc(theirs[strings.TrimPrefix(cmd.CommandPath(), "tutti ")], func(f theirFlag) bool {
			return !f.linked && slices.Contains(f.names, flag[1])
		})
		ours := strings.HasPrefix(flag[1], "--") && flags.Lookup(name) != nil || len(name) == 1 && flags.ShorthandLookup(name) != nil
		if theirs || ours || name == "help" || name == "version" {
			continue
		}
		return cmd.CommandPath() + " has no flag " + flag[1]
	}
	return ""
}

// outsideQuotes leaves out what is in quotes: it belongs to others.
func outsideQuotes(text string) string {
	return regexp.MustCompile(`'[^']*'|"[^"]*"`).ReplaceAllString(text, "")
}

// The pages for people who come from something else, and those about a server's life, name settings that there are.
func TestPagesNameSettingsThatExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, key := range slices.Concat(serverSettings().keys(), agentSettings().keys()) {
		known[key] = true
	}
	// what else is written so: Puppet's own, PuppetDB's, and figures
	others := regexp.MustCompile(`^(tutti_|certificate_|file_|static_file|dns_alt|node_terminus|external_nodes|soft_write|command_broadcast|server_urls|puppetdb_query|puppet_gem|fact_paths|free_bytes|read_only|environment_classes|environment_timeout|config_version|static_catalogs|csr_attributes|ca_ttl|strict_variables|code_id|catalog_uuid|transaction_uuid|request_id|corrective_change|custom_attributes|new_environment|similar_environments)`)
	named, all := 0, documents(t)
	for _, page := range []string{
		"install.md", "enrol.md", "operate.md", "code.md", "from-puppet-server.md", "from-puppetdb.md", "compile-cell.md", "limits.md", "glossary.md",
	} {
		for _, span := range inBackticks.FindAllStringSubmatch(all[page], -1) {
			found := aSetting.FindStringSubmatch(span[1])
			if found == nil || others.MatchString(found[1]) {
				continue
			}
			if named++; !known[found[1]] {
				t.Errorf("%s names the setting %s, and there is none", page, found[1])
			}
		}
	}
	if named < 80 {
		t.Errorf("pages name %d settings: this test has lost its eyes", named)
	}
}
