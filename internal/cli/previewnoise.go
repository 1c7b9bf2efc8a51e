package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var previewNoise = noun{
	use: "noise", short: "Hide changes of previews that nobody needs to look at",
	verbs: []declared{noiseList, noiseSet, noiseRemove, noiseHistory, noiseSuggest},
}

// noiseTable shows noise rules.
func noiseTable(empty string) print.Table[api.NoiseRule] {
	return print.Table[api.NoiseRule]{
		Columns: []string{"rule", "version", "hides", "environments", "by", "set", "why"},
		Spare:   []string{"set", "by", "version", "environments"},
		Row: func(r api.NoiseRule) []any {
			hides := noiseText(r.Noise)
			if r.Removed {
				hides = "(removed)"
			}
			return []any{r.Name, r.Version, hides, listText(r.Environments), r.Author, r.At, r.Why}
		},
		Name:  func(r api.NoiseRule) string { return r.Name },
		Empty: empty,
	}
}

// listText is a list of words, or "all".
func listText(words []string) string {
	if len(words) == 0 {
		return "all"
	}
	return strings.Join(words, ",")
}

// noiseText says which changes are meant.
func noiseText(n api.Noise) string {
	var parts []string
	for _, part := range []string{n.Change, resourceText(n)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(n.Parameters) > 0 {
		parts = append(parts, strings.Join(n.Parameters, ","))
	}
	if n.Nodes != "" {
		parts = append(parts, "on "+n.Nodes)
	}
	return strings.Join(parts, " ")
}

func resourceText(n api.Noise) string {
	if n.Type == "" && n.Title == "" {
		return ""
	}
	return first(n.Type, "*") + "[" + first(n.Title, "*") + "]"
}

var noiseList = verb[api.Nothing]{
	use: "list", short: "List the rules that hide changes", example: "  tutti preview noise list",
	prints: aList,
	run: lists(api.NoiseList, func(*api.Nothing) print.Table[api.NoiseRule] {
		return noiseTable("No noise rules: previews show every change.")
	}),
}

var noiseSet = verb[api.Noise]{
	use: "set RULE", short: "Hide changes in previews from now on, also in those that are there", aliases: []string{"add"},
	long: `Hide changes in previews. All that is said must hold for a change; in patterns, * stands for any text. A rule that is there gets a new
version. Previews say how many changes each rule hides, and tutti preview show --noise shows them. What does not compile is never hidden, and policies judge
hidden changes, too.`,
	example: `  tutti preview noise set motd --type File --title '/etc/motd' --parameter content --why 'has the date in it'
  tutti preview noise set lab --type Package --parameter ensure --nodes 'facts.role = "lab"' --environment production`,
	flags: func(f flagSet, in *api.Noise) {
		f.StringVar(&in.Change, "change", "", "only changes of this kind: added, removed, changed, node or edge")
		f.StringVar(&in.Type, "type", "", "type of the resource, a pattern")
		f.StringVar(&in.Title, "title", "", "title of the resource, a pattern; a node's own name in it is <node>, its host name <host>")
		f.StringSliceVar(&in.Parameters, "parameter", nil, "nothing but these parameters changes, patterns; may be repeated")
		f.StringVar(&in.Nodes, "nodes", "", "PQL: the nodes that have the change are all among those that this condition holds for")
		f.StringSliceVarP(&in.Environments, "environment", "e", nil, "only previews of these environments; may be repeated")
		f.StringVar(&in.Why, "why", "", "the reason, for people")
		f.completes("nodes", completeCondition)
	},
	run: func(ctx context.Context, c *call, in *api.Noise) error {
		return showAnswer(ctx, c.app, api.NoiseSet, api.NoiseSetRequest{Rule: c.args[0], Noise: *in}, printNoise)
	},
}

func printNoise(to print.Printer, r api.NoiseRule) error {
	if r.Removed {
		to.Hint("Noise rule %s hides nothing any more", r.Name)
		return nil
	}
	to.Hint("Noise rule %s, version %d, hides: %s", r.Name, r.Version, noiseText(r.Noise))
	return nil
}

var noiseRemove = verb[api.NoiseRequest]{
	use: "delete RULE", short: "Delete a rule, and show again what it hides", example: "  tutti preview noise delete motd",
	destroys: func(_ context.Context, _ *call, in *api.NoiseRequest) (string, error) {
		return "show again in previews what the rule " + in.Rule + " hides", nil
	},
	into: func(in *api.NoiseRequest, args []string) { in.Rule = args[0] },
	run:  shows(api.NoiseRemove, printNoise),
}

var noiseHistory = verb[api.NoiseRequest]{
	use: "history RULE", short: "List every version of a rule, newest first", example: "  tutti preview noise history motd",
	prints: aList,
	into:   func(in *api.NoiseRequest, args []string) { in.Rule = args[0] },
	run:    lists(api.NoiseHistory, func(*api.NoiseRequest) print.Table[api.NoiseRule] { return noiseTable("") }),
}

var noiseSuggest = verb[api.NoiseSuggestRequest]{
	use: "suggest ENVIRONMENT", short: "Suggest rules for changes that people acknowledged again and again",
	prints: aList,
	long: `Suggest rules for changes that people acknowledged again and again: those of the same type, title and parameters, in at least --least previews.
Titles that differ only in numbers count as one. Nothing is hidden before somebody sets the rule.`,
	example: "  tutti preview noise suggest production\n  tutti preview noise suggest production --least 2",
	flags: func(f flagSet, in *api.NoiseSuggestRequest) {
		f.IntVar(&in.Least, "least", 0, "in at least so many previews; 0: 3")
	},
	run: func(ctx context.Context, c *call, in *api.NoiseSuggestRequest) error {
		in.Environment = c.args[0]
		found, err := ask(ctx, c.app, api.NoiseSuggest, *in)
		if err != nil {
			return err
		}
		if err := print.List(c.printer(), found.Items, print.Table[api.NoiseSuggestion]{
			Columns: []string{"previews", "by", "rule"},
			Row: func(s api.NoiseSuggestion) []any {
				return []any{s.Previews, strings.Join(s.People, ","), noiseCommand(s)}
			},
			Name:  func(s api.NoiseSuggestion) string { return s.Name },
			Empty: "No suggestions: no change was acknowledged in so many previews that no rule hides.",
		}); err != nil || len(found.Items) == 0 {
			return err
		}
		c.hint("Set one with: tutti preview noise set …")
		return nil
	},
}

// noiseCommand is what sets a suggested rule.
func noiseCommand(s api.NoiseSuggestion) string {
	parts := []string{s.Name, "--change", s.Noise.Change, "--type", quoted(s.Noise.Type), "--title", quoted(s.Noise.Title)}
	if len(s.Noise.Parameters) > 0 {
		parts = append(parts, "--parameter", quoted(strings.Join(s.Noise.Parameters, ",")))
	}
	return strings.Join(append(parts, "--environment", listText(s.Noise.Environments)), " ")
}

// quoted is a word as a shell reads it.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// quieter takes the changes away that noise rules hide, unless they are wanted.
func (p previewPrinting) quieter(changes []api.PreviewChange) []api.PreviewChange {
	if p.noise {
		return changes
	}
	var loud []api.PreviewChange
	for _, change := range changes {
		if change.Noise == "" {
			loud = append(loud, change)
		}
	}
	return loud
}

// hiddenText says how much noise rules hide: 3 changes by noise rules: motd 2, build 1.
func hiddenText(hidden []api.HiddenChanges) string {
	total, parts := 0, make([]string, len(hidden))
	for i, h := range hidden {
		total += h.Changes
		parts[i] = fmt.Sprintf("%s %d", h.Rule, h.Changes)
	}
	return fmt.Sprintf("%s by noise rules: %s", fault.Count(total, "change"), strings.Join(parts, ", "))
}

// hiddenLine says in a line of its own how much noise rules hide, if they do.
func (p previewPrinting) hiddenLine(format string, hidden []api.HiddenChanges) string {
	if len(hidden) == 0 || p.noise {
		return ""
	}
	return fmt.Sprintf(format, hiddenText(hidden))
}

// withoutNoise takes the resources away that noise rules hide from one node's differences, and counts them.
func withoutNoise(d *api.CatalogDifference) (hidden int) {
	var loud []api.ResourceDifference
	for _, r := range d.Resources {
		if r.Noise == "" {
			loud = append(loud, r)
			continue
		}
		hidden++
		switch r.Change {
		case "added":
			d.Added--
		case "removed":
			d.Removed--
		case "changed":
			d.Changed--
		}
	}
	d.Resources = loud
	return hidden
}
