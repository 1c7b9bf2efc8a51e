package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	targets "github.com/tutti-project/tutti/internal/target"
)

// mcoCommand is for fingers that know MCollective: its commands with their flags, layouts and exit codes. Each says on standard error what
// the same is in Tutti's own words.
var mcoCommand = asking{noun{
	use: "mco", short: "MCollective's commands, for those who know them",
	verbs: []declared{mcoPing, mcoFind, mcoRPC, mcoFacts, mcoInventory, mcoPuppet, mcoService, mcoPackage, mcoPlugin, mcoHelpVerb},
}}

// The exit codes of mco, in place of Tutti's own.
const (
	mcoNobody  = 1 // no node was discovered
	mcoFailed  = 2 // some of those that answered failed
	mcoSilent  = 3 // nodes were discovered, and none answered
	mcoNothing = 4 // nobody was discovered by a question, and nobody answered
)

// mcoHelp is what the help of each verb says of flags and exit codes.
const mcoHelp = `Nodes are those whose agent is connected and for which all conditions hold; without a condition, all that are connected. --nodes FILE, or --dm
stdin, names those among which they choose: one a line, or the answers of an earlier call as -j prints them.

Exit codes are MCollective's: 0 all who answered did it; 1 no node was discovered; 2 some failed; 3 nodes were discovered, and none
answered; 4 nothing was discovered and nothing answered. What is wrong with the command line, the server or your rights has the codes of all
other commands.`

// mcoFlags are the flags that all of them have.
type mcoFlags struct {
	targetFlags               // of them conditions and limit
	compound           string // in MCollective's language
	file, method       string // where the names are: a file, or how nodes are discovered
	options            []string
	batch              int
	sleep, timeout     time.Duration
	json, verbose, yes bool
}

// mcoLongNames are other names of flags.
var mcoLongNames = map[string]string{
	"wf": "with-fact", "wc": "with-class", "wa": "with-agent", "wi": "with-identity", "ln": "limit-nodes", "limit-nodes": "limit",
	"discovery-method": "dm", "discovery-timeout": "dt", "no-progress": "np", "batch-sleep-time": "batch-sleep",
}

func addMcoFlags(f flagSet, m *mcoFlags) {
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if other, known := mcoLongNames[name]; known {
			name = other
		}
		return pflag.NormalizedName(name)
	})
	f.StringArrayVarP(&m.filter.Facts, "with-fact", "F", nil,
		"nodes with this fact (--wf): os.family=Debian, memory.free>100, fqdn=/^web/; as all these, may be given many times")
	f.StringArrayVarP(&m.filter.Classes, "with-class", "C", nil, "nodes with this class in their last catalog (--wc): NAME or /RE/")
	f.StringArrayVarP(&m.filter.Modules, "with-agent", "A", nil, "nodes that have this module (--wa): NAME or /RE/")
	f.StringArrayVarP(&m.filter.Names, "with-identity", "I", nil, "nodes of this name (--wi): NAME or /RE/; of several, one must fit")
	f.StringArrayVarP(&m.filter.Words, "with", "W", nil, "nodes with all these facts and classes: 'os.family=Debian role::web'")
	f.StringVarP(&m.compound, "select", "S", "", "nodes for which a compound filter of MCollective holds: 'os.family=Debian and not role::db'")
	addLimitFlags(f, &m.targetFlags)
	f.IntVar(&m.batch, "batch", 0, "how many nodes at a time; 0: all")
	m.sleep = batchSleep
	f.Var((*secondsFlag)(&m.sleep), "batch-sleep", "how long to wait between two batches, in seconds; there is none where something is changed")
	f.VarP((*secondsFlag)(&m.timeout), "timeout", "t", "how long a node has to answer, in seconds; 0: what the action says")
	f.BoolVarP(&m.json, "json", "j", false, "print JSON")
	f.BoolVarP(&m.verbose, "verbose", "v", false, "print more")
	f.BoolVarP(&m.yes, "yes", "y", false, "do not ask")
	f.StringVar(&m.file, "nodes", "", "file that names the nodes to choose from")
	f.StringVar(&m.method, "dm", "", "how nodes are discovered: stdin and flatfile read their names; others mean nothing here, the server knows its nodes")
	f.StringArrayVar(&m.options, "do", nil, "option of --dm: file=FILE for flatfile")
	f.String("dt", "", "accepted, means nothing here")
	f.String("np", "", "accepted, means nothing here")
	f.Lookup("np").NoOptDefVal = "true"
	f.offers("with")
}

// secondsFlag is a duration that may be a bare number of seconds, as mco takes it.
type secondsFlag time.Duration

// String implements pflag.Value.
func (s *secondsFlag) String() string {
	if *s == 0 {
		return ""
	}
	return print.Duration(time.Duration(*s))
}

// Set implements pflag.Value.
func (s *secondsFlag) Set(text string) error {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		text += "s"
	}
	d, err := parseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("%.40q is less than nothing", text)
	}
	*s = secondsFlag(d)
	return err
}

// Type implements pflag.Value.
func (*secondsFlag) Type() string { return "seconds" }

// conditions are what the flags say of nodes, whose names are read if they are in a file.
func (m *mcoFlags) conditions(a *app) (f api.NodeFilter, err error) {
	f = m.filter
	if source := m.source(); source != "" {
		if m.nodes, err = namesFrom(a, source); err != nil {
			return f, err
		}
	}
	if m.compound == "" {
		return f, nil
	}
	if f.Select, err = filter.FromMCollective(m.compound); err != nil {
		return f, usageError{err}
	}
	return f, nil
}

// source is what names the nodes: a file, - for standard input; empty: nothing does.
func (m *mcoFlags) source() string {
	switch {
	case m.file != "":
		return m.file
	case m.method == "stdin":
		return "-"
	case m.method == "flatfile":
		for _, option := range m.options {
			if file, ok := strings.CutPrefix(option, "file="); ok {
				return file
			}
		}
	}
	return ""
}

// namesFrom reads the names of nodes in a file, or on standard input.
func namesFrom(a *app, source string) ([]string, error) {
	if source == "-" {
		return namesIn("standard input", a.system.In, nil)
	}
	return namesOf(source, nil)
}

// among says which nodes conditions choose among: those that were named, else all.
func (m *mcoFlags) among(to *api.JobTargets) { to.Nodes, to.All = m.nodes, len(m.nodes) == 0 }

// discoveryTime is how long agents have to show that they are there.
const discoveryTime = 2 * time.Second

// discovery is who is there.
type discovery struct {
	nodes []string // sorted
	away  int      // for which the conditions hold, too, whose agent is not connected
	took  time.Duration
}

// discover finds the nodes that are connected and for which conditions hold, at most as many as --limit says.
func (c *call) discover(ctx context.Context, m *mcoFlags, f api.NodeFilter) (d discovery, err error) {
	begun := time.Now()
	request := api.NodePingRequest{Timeout: discoveryTime.Milliseconds()}
	m.among(&request.Targets)
	targetFlags{filter: f}.narrow(&request.Targets)
	all, err := ask(ctx, c.app, api.NodePing, request)
	if err != nil {
		return d, err
	}
	d.nodes, d.away = connectedOf(all.Items)
	if d.nodes, err = targets.Limit(d.nodes, m.most(), m.seed.seed); err != nil {
		return d, usageError{err}
	}
	d.took = time.Since(begun)
	if d.away > 0 {
		c.hint("Not connected, and so not discovered: %s", fault.Count(d.away, "node"))
	}
	return d, nil
}

// connectedOf are the names of nodes whose agent is connected, and how many others there are.
func connectedOf(pongs []api.Pong) (names []string, away int) {
	for _, p := range pongs {
		if p.Connected == nil {
			away++
			continue
		}
		names = append(names, p.Node)
	}
	slices.Sort(names)
	return names, away
}

// ends ends a command with an exit code of mco. What there is to say was said.
func (c *call) ends(code int) error {
	if code == exitDone {
		return nil
	}
	return errors.Join(jobOutcome{code: code}, errSaid)
}

// says prints a line of mco that is no result.
func (c *call) says(format string, args ...any) {
	_, _ = fmt.Fprintf(c.system.Err, format+"\n", args...)
}

// inTutti says what the command is in Tutti's words, and which flags meant nothing.
func (c *call) inTutti(words ...string) {
	c.hint("In tutti: tutti %s", commandLine(words))
	method := c.cmd.Flags().Lookup("dm")
	if method == nil {
		return
	}
	meansNothing := method.Changed && !slices.Contains(readingMethods, method.Value.String())
	if meansNothing || c.changed("dt") || c.changed("np") {
		c.hint("--dm, --dt and --np mean nothing here: the server knows which nodes there are.")
	}
}

// readingMethods are the ways of discovery that read names.
var readingMethods = []string{"stdin", "flatfile"}

// commandLine joins words as a shell takes them.
func commandLine(words []string) string {
	safe := make([]string, len(words))
	for i, word := range words {
		safe[i] = word
		if !plainWord.MatchString(word) {
			safe[i] = quoted(word)
		}
	}
	return strings.Join(safe, " ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// nodeWords are Tutti's flags for the same nodes.
func (m *mcoFlags) nodeWords(f api.NodeFilter) (words []string) {
	if source := m.source(); source == "-" {
		words = append(words, "--targets", "-")
	} else if source != "" {
		words = append(words, "--targets", "@"+source)
	}
	for _, flag := range []struct {
		name   string
		values []string
	}{
		{"--fact", f.Facts}, {"--class", f.Classes}, {"--module", f.Modules}, {"--name", f.Names}, {"--with", f.Words},
	} {
		for _, value := range flag.values {
			words = append(words, flag.name, value)
		}
	}
	if f.Select != "" {
		words = append(words, "--select", f.Select)
	}
	if len(words) == 0 {
		words = append(words, "--all")
	}
	if m.most() != "" {
		words = append(words, "--limit", m.most())
	}
	if m.seed.seed != nil {
		words = append(words, "--limit-seed", m.seed.String())
	}
	return words
}

// paceWords are Tutti's flags for how fast and how long.
func (m *mcoFlags) paceWords(q mcoQuestion, reads bool) (words []string) {
	flag, most := "--batch", m.batch
	if !reads {
		flag = "--concurrency"
	}
	if q.atOnce > 0 {
		most = q.atOnce
	}
	if most > 0 {
		words = append(words, flag, strconv.Itoa(most))
	}
	if most > 0 && m.sleep != batchSleep {
		words = append(words, "--batch-sleep", print.Duration(m.sleep))
	}
	if m.timeout > 0 {
		words = append(words, "--timeout", print.Duration(m.timeout))
	}
	return words
}
