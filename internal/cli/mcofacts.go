package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var mcoFacts = verb[mcoFlags]{
	use: "facts NAME", short: "Count the values of a fact, as mco facts", prints: silent,
	long: `Ask nodes for a fact, and count its values; --verbose names the nodes of each.

` + mcoHelp,
	example: "  tutti mco facts os.family\n  tutti mco facts os.release.major -v -C role::web",
	flags:   addMcoFlags,
	run: func(ctx context.Context, c *call, m *mcoFlags) error {
		p, err := c.callAction(ctx, m, mcoQuestion{module: "rpcutil", action: "get_fact", texts: map[string]string{"fact": c.args[0]}})
		if err != nil {
			return err
		}
		p.action.Aggregates = nil // the counts are the answer
		if err := c.printAnswers(m, p, func() string { return factCounts(c.args[0], p.all, m.verbose) + p.endText() }); err != nil {
			return err
		}
		return c.ends(p.code())
	},
}

// factCounts is what mco facts prints.
func factCounts(name string, answers []action.Answer, verbosely bool) string {
	nodes := map[string][]string{}
	for _, a := range answers {
		if value := dataOf(a)["value"]; a.Code == action.Done && string(value) != "null" {
			text := print.OneLine(valueText(value))
			nodes[text] = append(nodes[text], string(a.Node))
		}
	}
	if len(nodes) == 0 {
		return "No values found for fact " + print.OneLine(name) + "\n"
	}
	values := slices.Sorted(maps.Keys(nodes))
	widest := 40
	for _, value := range values {
		widest = max(widest, len([]rune(value)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Report for fact: %s\n\n", print.OneLine(name))
	for _, value := range values {
		fmt.Fprintf(&b, "        %-*s found %d %s\n", widest, value, len(nodes[value]), "times") // the original says so of one, too
		if verbosely {
			slices.Sort(nodes[value])
			fmt.Fprintf(&b, "\n%s\n", setIn("            ", strings.Join(nodes[value], "\n")))
		}
	}
	return b.String()
}

// dataOf are the results of an answer by their names.
func dataOf(a action.Answer) (data map[string]json.RawMessage) {
	_ = json.Unmarshal(a.Data, &data) // what is no object has no fields
	return data
}

var mcoInventory = verb[mcoFlags]{
	use: "inventory NODE", short: "Show what a node has, as mco inventory", prints: silent,
	long: `Ask one node for its agent, modules, data sources, classes and facts.

` + mcoHelp,
	example: "  tutti mco inventory web-1.example.test",
	flags:   addMcoFlags,
	run: func(ctx context.Context, c *call, m *mcoFlags) error {
		m.filter.Names = append(m.filter.Names, c.args[0])
		p, err := c.callAction(ctx, m, mcoQuestion{module: "rpcutil", action: "inventory"})
		if err != nil {
			return err
		}
		if m.json {
			err = c.printer().JSON(p.forPrograms())
			return cmp.Or(err, c.ends(p.code()))
		}
		if p.code() != exitDone {
			return cmp.Or(c.printer().Text(p.text()), c.ends(p.code()))
		}
		return c.printer().Text(inventoryText(p.all[0]))
	},
}

// inventoryText is what mco inventory prints.
func inventoryText(a action.Answer) string {
	data := dataOf(a)
	var b strings.Builder
	fmt.Fprintf(&b, "Inventory for %s:\n\n   Server Statistics:\n%28s: %s\n", print.OneLine(string(a.Node)), "Version", print.OneLine(valueText(data["version"])))
	for _, list := range [][2]string{{"Agents", "agents"}, {"Data Plugins", "data_plugins"}, {"Configuration Management Classes", "classes"}} {
		var names []string
		_ = json.Unmarshal(data[list[1]], &names) // what is no list has no names
		slices.Sort(names)
		fmt.Fprintf(&b, "\n   %s:\n%s", list[0], inColumns(names))
	}
	b.WriteString("\n   Facts:\n")
	var facts map[string]json.RawMessage
	_ = json.Unmarshal(data["facts"], &facts) // the same
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		fmt.Fprintf(&b, "      %s => %s\n", print.OneLine(name), print.OneLine(valueText(facts[name])))
	}
	return b.String()
}

// inColumns sets names in, three in a line.
func inColumns(names []string) string {
	if len(names) == 0 {
		return "      none\n"
	}
	var b strings.Builder
	for line := range slices.Chunk(names, 3) {
		padded := make([]string, len(line))
		for i, name := range line {
			padded[i] = fmt.Sprintf("%-30s", print.OneLine(name))
		}
		b.WriteString("      " + strings.TrimRight(strings.Join(padded, " "), " ") + "\n")
	}
	return b.String()
}

var mcoService = verb[mcoFlags]{
	use: "service NAME ACTION", short: "See, start, stop and restart services, as mco service", prints: silent,
	long: `Have nodes do something with a service: start, stop, restart, status, enable or disable; name and action in either order. Of a service
that is as it was wanted nothing is printed, unless with --verbose.

` + mcoHelp,
	example: "  tutti mco service nginx status -C role::web\n  tutti mco service restart nginx -I web-1.example.test",
	flags:   addMcoFlags,
	run: func(ctx context.Context, c *call, m *mcoFlags) error {
		name, does, err := eitherOrder(c.args, serviceActions)
		if err != nil {
			return err
		}
		return c.callOnThings(ctx, m, mcoQuestion{module: "service", action: does, texts: map[string]string{"service": name}}, serviceLine)
	},
}

var (
	serviceActions = []string{"status", "start", "stop", "restart", "enable", "disable"}
	packageActions = []string{"status", "install", "update", "uninstall", "purge"}
)

// serviceLine is what is said of a service; false: it is as it was wanted.
func serviceLine(does string, a action.Answer) (text string, surprises bool) {
	text = valueText(dataOf(a)["status"])
	wanted := map[string]string{"start": "running", "restart": "running", "stop": "stopped"}[does]
	return text, does == "status" || wanted != "" && text != wanted
}

var mcoPackage = verb[mcoFlags]{
	use: "package [NAME] ACTION", short: "See, install and remove packages, as mco package", prints: silent,
	args: packageWords,
	long: `Have nodes do something with a package: status, install, update, uninstall or purge; name and action in either order. Of a package
that is as it was wanted nothing is printed, unless with --verbose. Without a name: count and md5 tell how many packages there are and whether
they are the same, checkupdates lists newer ones; apt_checkupdates, yum_checkupdates, apt_update and yum_clean do so with one package manager.

` + mcoHelp,
	example: "  tutti mco package openssl status\n  tutti mco package update openssl -F os.family=Debian --batch 20",
	flags:   addMcoFlags,
	run: func(ctx context.Context, c *call, m *mcoFlags) error {
		if len(c.args) == 1 {
			return c.callOnThings(ctx, m, mcoQuestion{module: "package", action: c.args[0]}, fleetLine)
		}
		name, does, err := eitherOrder(c.args, packageActions)
		if err != nil {
			return err
		}
		return c.callOnThings(ctx, m, mcoQuestion{module: "package", action: does, texts: map[string]string{"package": name}}, packageLine)
	},
}

// packagesActions are those that name no package.
var packagesActions = []string{"count", "md5", "checkupdates", "apt_checkupdates", "yum_checkupdates", "apt_update", "yum_clean"}

// packageWords takes a package and an action, or an action that names none.
func packageWords(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 2, len(args) == 1 && slices.Contains(packagesActions, args[0]):
		return nil
	case len(args) == 1:
		return usageError{&fault.Error{
			Kind:   fault.Invalid,
			Detail: fmt.Sprintf("%.40q needs a package, or is none of %s; usage: tutti mco package NAME ACTION", args[0], alternatives(packagesActions)),
			Hint:   fault.DidYouMean(args[0], packagesActions),
		}}
	}
	return usageError{fault.New(fault.Invalid, "which package and action? usage: tutti mco package NAME ACTION")}
}

// fleetLine is what is said of all packages of a node: how many, their checksum, or those that are outdated.
func fleetLine(_ string, a action.Answer) (text string, surprises bool) {
	data := dataOf(a)
	var outdated []struct {
		Package string `json:"package"`
		Version string `json:"version"`
	}
	if list := data["outdated_packages"]; json.Unmarshal(list, &outdated) == nil && len(list) > 0 {
		words := make([]string, len(outdated))
		for i, one := range outdated {
			words[i] = one.Package + "-" + one.Version
		}
		return fault.Count(len(outdated), "outdated package") + strings.TrimSuffix(": "+strings.Join(words, ", "), ": "), true
	}
	return strings.TrimSpace(valueText(data["output"])), true
}

// packageLine is what is said of a package; false: it is as it was wanted.
func packageLine(does string, a action.Answer) (text string, surprises bool) {
	data := dataOf(a)
	text = valueText(data["ensure"])
	gone := text == "absent" || text == "purged"
	if name := valueText(data["name"]); !gone && name != "" {
		text = name + "-" + text
	}
	removes := does == "uninstall" || does == "purge"
	return text, does == "status" || gone != removes
}
