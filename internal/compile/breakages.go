package compile

import (
	"context"
	"regexp"
	"strings"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Breakages says whose catalogs do not compile. Whoever implements Wants implements it, too.
type Breakages interface {
	// Broken gives, of those of the nodes whose last compilation in their environment failed, that compilation. What
	// was only staged does not count.
	Broken(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]Compilation, error)
	// BrokenNodes is all nodes of which Broken would tell, in no order: who counts a whole fleet asks once.
	BrokenNodes(ctx context.Context) ([]fleet.Certname, error)
}

// placeText is where Puppet says in its messages in which file it is, and on which node: who shows the place apart needs neither.
var placeText = regexp.MustCompile(` ?\((?:file: [^()]*|line: [^()]*)\)|,? on node [^\s,]+$`)

// Plain is the error in one line without its place and node, and with the groups that it comes from: "web.pp:12: message" is a
// matter of whoever shows it.
func (e *Error) Plain() string { return e.with(e.Words()) }

// Words is the error in one line as Puppet words it, without its place and node.
func (e *Error) Words() string { return unplaced(e.Message) }

// unplaced is a message of Puppet in one line without its place and node.
func unplaced(message string) string {
	text := strings.Join(strings.Fields(placeText.ReplaceAllString(message, "")), " ")
	return placeText.ReplaceAllString(text, "")
}

// Told is the error for people: as Puppet words it, and behind that the groups that it comes from. Agents are told Message alone.
func (e *Error) Told() string { return e.with(e.Message) }

func (e *Error) with(text string) string {
	if e.From == "" {
		return text
	}
	return text + "; " + e.From
}
