package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// targetFlags say which nodes a job is for.
type targetFlags struct {
	names   []string // each a name, several with commas, @FILE or -
	nodes   []string // the same, by the other flag
	group   string
	where   string
	query   string
	app     string
	all     bool
	exclude []string
	take    string // an expression over the answers of an earlier call
	filter  api.NodeFilter
	limit   string // N or P%
	one     bool
	seed    seedFlag
}

// targetHelp is what the help of every job says of nodes.
const targetHelp = whichNodes + `
The nodes are shown before anything starts, and --dry-run starts nothing.`

// whichNodes is the part of it that is about the nodes alone.
const whichNodes = `Which nodes: names, a file of names (@FILE, one a line), standard input (-), the answers of an earlier call in such a file (-o json or jsonl; those
that are ok, or for which --take holds), a group, an application,
a condition or query in PQL, or --all; what is given adds up, --exclude takes away. Conditions (--fact, --class, --module, --name, --with,
--select) then leave those for which all of them hold; alone they choose among all nodes. --limit takes some of these.`

func addTargetFlags(f flagSet, t *targetFlags) {
	f.StringArrayVarP(&t.names, "targets", "t", nil, "nodes: NAME,NAME or @FILE or - (standard input); may be given many times")
	f.StringArrayVarP(&t.nodes, "nodes", "n", nil, "the same as --targets, as in puppet job")
	f.StringVar(&t.take, "take", "", `of answers of an earlier call, on standard input or in a file, the nodes for which this holds: 'code == 1 and data.status == "stopped"'; without it those that are ok`)
	f.StringVar(&t.group, "group", "", "the nodes of this group (name or id)")
	f.StringVar(&t.where, "where", "", "the nodes that this PQL condition holds for")
	f.StringVar(&t.query, "query", "", "the nodes that this PQL query answers with, or @FILE; it has the column certname")
	f.StringVar(&t.app, "app", "", "the nodes of this application: its model (Shop) or one instance (Shop[eu])")
	f.BoolVar(&t.all, "all", false, "every active node")
	f.StringArrayVar(&t.exclude, "exclude", nil, "not these nodes: NAME,NAME or @FILE; may be given many times")
	addFilterFlags(f, t)
	f.completes("targets", completeNodes)
	f.completes("nodes", completeNodes)
	f.completes("exclude", completeNodes)
	f.completes("group", completeGroup)
	f.completes("where", completeCondition)
}

// read makes the targets of a request of flags.
func readTargets(a *app, t targetFlags) (targets api.JobTargets, err error) {
	targets = api.JobTargets{Group: t.group, App: t.app, All: t.all}
	listed := func(word string) bool { return word == "-" || strings.HasPrefix(word, "@") }
	if t.take != "" && !slices.ContainsFunc(slices.Concat(t.names, t.nodes), listed) {
		return targets,
			usageError{fault.New(fault.Invalid, "--take chooses among the answers of an earlier call: give them on standard input (-) or in a file (--targets @FILE)")}
	}
	if targets.Nodes, err = nodeNames(a, "targets", slices.Concat(t.names, t.nodes), t.take); err != nil {
		return targets, err
	}
	if targets.Exclude, err = nodeNames(a, "exclude", t.exclude, ""); err != nil {
		return targets, err
	}
	if targets.Query, err = targetQuery(a, t); err != nil {
		return targets, err
	}
	t.narrow(&targets)
	some := len(targets.Nodes) > 0 || t.group != "" || t.app != "" || targets.Query != ""
	if !some && targets.Filter != nil {
		targets.All = true
		return targets, nil
	}
	switch {
	case t.all && some:
		return targets, usageError{fault.New(fault.Invalid, "--all is every node: give it alone, or name the nodes without it")}
	case !t.all && !some:
		return targets,
			usageError{fault.New(fault.Invalid, "which nodes? give names (--targets), --group, --where, --query, --app, a condition such as --fact, or --all")}
	}
	return targets, nil
}

// targetQuery is the one question of --where and --query.
func targetQuery(a *app, t targetFlags) (string, error) {
	switch {
	case t.where != "" && t.query != "":
		return "", usageError{fault.New(fault.Invalid, "--where and --query are two ways to ask one question: give one of them")}
	case t.where != "":
		_, err := readCondition(t.where)
		return t.where, err
	case t.query == "":
		return "", nil
	}
	text, err := queryText(a, t.query)
	if err != nil {
		return "", err
	}
	q, err := readQuery(text)
	if err != nil {
		return "", err
	}
	if !slices.Contains(q.Names(), "certname") {
		return "", usageError{fault.New(fault.Invalid, "--query must answer with the column certname, such as nodes[certname]{latest_report_status = \"failed\"}")}
	}
	return text, nil
}

// maxNodeList is the largest list of nodes that is read, in bytes.
const maxNodeList = 16 << 20

// nodeNames reads names, files of names, and standard input.
func nodeNames(a *app, flag string, given []string, take string) (names []string, err error) {
	taken, err := readTake(take)
	if err != nil {
		return nil, err
	}
	for _, word := range given {
		file, isFile := strings.CutPrefix(word, "@")
		var more []string
		switch {
		case word == "-":
			more, err = namesIn("standard input", a.system.In, taken)
		case isFile:
			more, err = namesOf(file, taken)
		default:
			more = strings.Split(word, ",")
		}
		if err != nil {
			return nil, err
		}
		for _, name := range more {
			if name = strings.TrimSpace(name); name == "" {
				return nil, usageError{fault.New(fault.Invalid, "--%s %.100q: a name is empty; names are separated by commas, without spaces", flag, word)}
			}
			if _, err := fleet.ParseCertname(name); err != nil {
				return nil, usageError{fault.New(fault.Invalid, "--%s: %s", flag, fault.Detail(err))}
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func namesOf(path string, taken *filter.Answers) ([]string, error) {
	file, err := openNamed("the list of nodes", path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return namesIn(path, file, taken)
}

// namesIn reads the answers of an earlier call, or one name a line; empty lines and what follows # are passed over.
func namesIn(what string, from io.Reader, taken *filter.Answers) (names []string, err error) {
	begun := bufio.NewReader(from)
	if startsAsJSON(begun) {
		return namesInAnswers(what, begun, taken)
	}
	if taken != nil {
		return nil, usageError{
			fault.New(fault.Invalid, "--take chooses among the answers of an earlier call, and %s holds none: those are what -o json or -o jsonl prints", what),
		}
	}
	lines := bufio.NewScanner(io.LimitReader(begun, maxNodeList+1))
	read := 0
	for lines.Scan() {
		read += len(lines.Bytes()) + 1
		line, _, _ := strings.Cut(lines.Text(), "#")
		names = append(names, strings.Fields(strings.ReplaceAll(line, ",", " "))...)
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("a line has more than %d bytes", bufio.MaxScanTokenSize)
		}
		return nil, usageError{fault.Wrap(fault.Invalid, err, "%s holds no list of nodes, one a line: %v", what, err)}
	}
	if read > maxNodeList {
		return nil, usageError{fault.New(fault.Invalid, "%s: a list of nodes has at most %d bytes", what, maxNodeList)}
	}
	if len(names) == 0 {
		return nil, usageError{fault.New(fault.Invalid, "%s names no node", what)}
	}
	return names, nil
}

// someNames lists names, the first few of them.
func someNames[Name ~string](names []Name, limit int) string {
	texts := make([]string, min(len(names), limit))
	for i := range texts {
		texts[i] = string(names[i])
	}
	text := strings.Join(texts, ", ")
	if len(names) > limit {
		text += fmt.Sprintf(", … (%d more)", len(names)-limit)
	}
	return text
}

// deniedText is which nodes of a plan are denied; empty: none are.
func deniedText(plan api.JobPlan) string {
	var words []string
	if len(plan.Denied) > 0 {
		words = append(words, someNames(plan.Denied, shownNames))
	}
	if plan.DeniedUnseen > 0 {
		words = append(words, fault.Count(plan.DeniedUnseen, "node")+" that you may not see")
	}
	return strings.Join(words, ", ")
}
