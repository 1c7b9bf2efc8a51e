package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// mcoPuppetInput is a word to Puppet's agents.
type mcoPuppetInput struct {
	mcoFlags
	once onceFlags
}

// puppetVerbs are the words of mco puppet.
var puppetVerbs = []string{"status", "count", "summary", "enable", "disable", "runonce", "runall", "resource"}

var mcoPuppet = verb[mcoPuppetInput]{
	use:   "puppet status|count|summary|enable|disable|runonce|runall|resource [REASON|N|TYPE NAME PROPERTY=VALUE...]",
	short: "See, hold and run Puppet's agents, as mco puppet", prints: silent,
	args: puppetWords,
	long: `See, hold and run Puppet's agents: status, count and summary read; disable takes a REASON; runonce runs all of them now; runall N runs at
most N at a time, those that are disabled left out; resource TYPE NAME PROPERTY=VALUE... has one resource be so, where the node's owner allows its type. runonce and runall wait until the runs have ended.

` + mcoHelp,
	example: "  tutti mco puppet status\n  tutti mco puppet disable 'kernel update' -C role::web\n  tutti mco puppet runall 5 -F os.family=Debian",
	flags: func(f flagSet, in *mcoPuppetInput) {
		addMcoFlags(f, &in.mcoFlags)
		in.once.add(f)
	},
	run: runMcoPuppet,
}

// puppetWords takes one of Puppet's verbs, and what belongs to it.
func puppetWords(_ *cobra.Command, args []string) error {
	if len(args) == 0 || !slices.Contains(puppetVerbs, args[0]) {
		given := strings.Join(args[:min(1, len(args))], "")
		return usageError{&fault.Error{
			Kind: fault.Invalid, Detail: fmt.Sprintf("%.40q is nothing that Puppet's agents do; choose %s", given, alternatives(puppetVerbs)),
			Hint: fault.DidYouMean(given, puppetVerbs),
		}}
	}
	switch {
	case args[0] == "runall" && len(args) == 2:
		if n, err := strconv.Atoi(args[1]); err != nil || n < 1 {
			return usageError{fault.New(fault.Invalid, "runall takes how many nodes run at a time, not %.40q", args[1])}
		}
	case args[0] == "runall":
		return usageError{fault.New(fault.Invalid, "how many at a time? usage: tutti mco puppet runall N")}
	case args[0] == "resource" && len(args) < 3:
		return usageError{fault.New(fault.Invalid, "which resource, and how is it to be? usage: tutti mco puppet resource TYPE NAME PROPERTY=VALUE...")}
	case args[0] == "resource":
		return propertiesOnly(args[3:])
	case len(args) > 2 || len(args) == 2 && args[0] != "disable":
		return usageError{fault.New(fault.Invalid, "%.40q is one argument too many for %s", args[len(args)-1], args[0])}
	}
	return nil
}

// propertiesOnly takes pairs.
func propertiesOnly(args []string) error {
	for _, pair := range args {
		if name, _, is := strings.Cut(pair, "="); !is || name == "" || name == "type" || name == "name" {
			return usageError{fault.New(fault.Invalid, "%.80q is no property: that is PROPERTY=VALUE, such as ensure=present", pair)}
		}
	}
	return nil
}

// resourceTexts is a resource as the action takes it.
func resourceTexts(args []string) map[string]string {
	texts := map[string]string{"type": args[0], "name": args[1]}
	for _, pair := range args[2:] {
		name, value, _ := strings.Cut(pair, "=")
		texts[name] = value
	}
	return texts
}

func runMcoPuppet(ctx context.Context, c *call, in *mcoPuppetInput) error {
	m, q := &in.mcoFlags, mcoQuestion{module: "puppet", action: c.args[0]}
	layout := (*mcoAnswers).text
	switch c.args[0] {
	case "status":
		layout = func(p *mcoAnswers) string { return linesText(p, puppetLine) + p.endText() }
	case "count":
		q.action, layout = "status", func(p *mcoAnswers) string { return puppetCounts(p.all) }
	case "summary":
		q.action, layout = "last_run_summary", func(p *mcoAnswers) string { return puppetSummary(p.all) }
	case "disable":
		if len(c.args) > 1 {
			q.texts = map[string]string{"message": c.args[1]}
		}
	case "runonce":
		q.texts = in.once.texts(c)
	case "resource":
		q.texts = resourceTexts(c.args[1:])
	case "runall":
		q.action, q.texts, q.only = "runonce", in.once.texts(c), "puppet().enabled == true"
		q.texts["force"] = "true"
		q.atOnce, _ = strconv.Atoi(c.args[1]) // it was looked at
		layout = func(p *mcoAnswers) string { return runallText(p.all, p.ended) + p.endText() }
	}
	if q.action != "resource" {
		q.own = puppetWordsOf(q)
	}
	p, err := c.callAction(ctx, m, q)
	if err != nil {
		return err
	}
	if err := c.printAnswers(m, p, func() string { return layout(p) }); err != nil {
		return err
	}
	return c.ends(p.code())
}

// puppetWordsOf is Tutti's own command for a question of the module puppet.
func puppetWordsOf(q mcoQuestion) []string {
	name := q.action
	if name == "last_run_summary" {
		name = "summary"
	}
	return append([]string{"puppet", name}, onceWords(q.texts)...)
}

func puppetLine(_ string, a action.Answer) (text string, surprises bool) {
	return valueText(dataOf(a)["message"]), true
}

// puppetCounts is what mco puppet count prints.
func puppetCounts(answers []action.Answer) string {
	total, failed := 0, 0
	counts := map[string]int{}
	for _, a := range answers {
		if a.Code != action.Done {
			if replied(a) {
				failed++
			}
			continue
		}
		total++
		data := dataOf(a)
		for _, field := range []string{"enabled", "applying", "daemon_present", "idling"} {
			if string(data[field]) == "true" {
				counts[field]++
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Total Puppet nodes: %d\n", total)
	for _, block := range [][]struct {
		label string
		count int
	}{
		{{"Nodes currently enabled", counts["enabled"]}, {"Nodes currently disabled", total - counts["enabled"]}},
		{{"Nodes currently doing puppet runs", counts["applying"]}, {"Nodes currently stopped", total - counts["applying"]}},
		{
			{"Nodes with daemons started", counts["daemon_present"]},
			{"Nodes without daemons started", total - counts["daemon_present"]},
			{"Daemons started but idling", counts["idling"]},
		},
	} {
		b.WriteString("\n")
		for _, row := range block {
			fmt.Fprintf(&b, "%33s: %d\n", row.label, row.count)
		}
	}
	b.WriteString("\n")
	if failed > 0 {
		fmt.Fprintf(&b, "Failed to retrieve status of %s\n", fault.Count(failed, "node"))
	}
	return b.String()
}

// puppetSummary is what mco puppet summary prints: for each number of the last runs how nodes are spread over it.
func puppetSummary(answers []action.Answer) string {
	var done []action.Answer
	for _, a := range answers {
		if a.Code == action.Done && string(dataOf(a)["lastrun"]) != "0" {
			done = append(done, a)
		}
	}
	var b strings.Builder
	b.WriteString("Summary statistics for " + strconv.Itoa(len(done)) + " nodes:\n\n") // also of one, as the original
	for _, row := range [][2]string{
		{"Total resources", "total_resources"},
		{"Out Of Sync resources", "out_of_sync_resources"},
		{"Failed resources", "failed_resources"},
		{"Changed resources", "changed_resources"},
		{"Corrected resources", "corrected_resources"},
		{"Config Retrieval time (seconds)", "config_retrieval_time"},
		{"Total run-time (seconds)", "total_time"},
		{"Time since last run (seconds)", "since_lastrun"},
	} {
		var numbers []float64
		for _, a := range done {
			var n float64
			if value := dataOf(a)[row[1]]; value != nil && string(value) != "null" && json.Unmarshal(value, &n) == nil {
				numbers = append(numbers, n)
			}
		}
		fmt.Fprintf(&b, "%33s: %s\n", row[0], spread(numbers))
	}
	return b.String() + "\n"
}

// spread draws numbers in twenty steps from the least to the most, as mco puppet summary does: a step is wider than a twentieth by one, and where all
// are equal no step has any.
func spread(numbers []float64) string {
	if len(numbers) == 0 {
		return ""
	}
	least, most, total := slices.Min(numbers), slices.Max(numbers), 0.0
	var steps [20]int
	for _, n := range numbers {
		total += n
		if least != most {
			steps[min(max(0, int((n-least)/((most-least)/float64(len(steps))+1))), len(steps)-1)]++ // a difference may be too large for a number
		}
	}
	bars := []rune("▁▂▃▄▅▆▇")
	highest := slices.Max(steps[:])
	var b strings.Builder
	for _, count := range steps {
		bar := 0
		if count > 0 {
			bar = max(1, int(math.Round(float64(count*(len(bars)-1))/float64(highest))))
		}
		b.WriteRune(bars[bar])
	}
	return fmt.Sprintf("%s  min: %-6s avg: %-6s max: %-6s", b.String(), inThousands(least), inThousands(total/float64(len(numbers))), inThousands(most))
}

// inThousands is a number in thousands or millions, with one place.
func inThousands(n float64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1fm", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1fk", n/1e3)
	}
	return fmt.Sprintf("%.1f", n)
}

// runallText is a line for each run, with when it ended.
func runallText(answers []action.Answer, ended map[string]time.Time) string {
	var b strings.Builder
	for _, a := range answers {
		text := statusText(a)
		if a.Code == action.Done {
			text = print.OneLine(valueText(dataOf(a)["summary"]))
		}
		at := "-"
		if t, known := ended[string(a.Node)]; known {
			at = t.Local().Format("Mon Jan 02 15:04:05 -0700 2006")
		}
		fmt.Fprintf(&b, "%s> %s: %s\n", at, print.OneLine(string(a.Node)), text)
	}
	return b.String() + "\n"
}
