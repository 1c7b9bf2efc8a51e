package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
)

// deployAnswer is what a deploy says to programs.
type deployAnswer struct {
	api.Deployed
	Near     []string     `json:"similar_environments,omitempty"` // of a new environment
	Copied   []copiedLink `json:"copied_links,omitempty"`
	Warnings []string     `json:"warnings,omitempty"`
	Released bool         `json:"-"` // some nodes get code by releases only
}

type copiedLink struct {
	Path  string `json:"path"`
	From  string `json:"from"`
	Files int    `json:"files"`
}

func printDeployed(a *app, answer deployAnswer) error {
	if answer.Check != nil {
		printCheck(a, *answer.Check, "`tutti code status "+answer.Environment+" --check`")
	}
	_, err := fmt.Fprintf(a.system.Out, "%s is now version %s (%s, %s)\n", answer.Environment, short(answer.ID),
		fault.Count(answer.Files, "file"), print.Bytes(answer.Bytes))
	if answer.NewEnvironment {
		a.hint("%s", newEnvironmentText(answer))
	}
	if answer.Released {
		a.hint("Nodes in released mode do not get it by themselves: tutti preview create %s, then tutti release create (which they are: tutti catalog mode)",
			answer.Environment)
	}
	return err
}

// someReleased says whether a node or group was set to released mode. Who may not see modes is told nothing.
func someReleased(ctx context.Context, client *api.Client) bool {
	modes, err := api.ModeList.Call(ctx, client, api.Nothing{})
	return err == nil && slices.ContainsFunc(modes.Items, func(m api.ModeSet) bool { return m.Mode == "released" })
}

// defaultEnvironment is the one that Puppet's agents ask for: it is never taken for a misspelt one.
const defaultEnvironment = "production"

// newEnvironmentText announces an environment that was made by being deployed to.
func newEnvironmentText(answer deployAnswer) string {
	env := answer.Environment
	text := fmt.Sprintf("%s is a new environment: nodes get its code when they ask for it, or when a group puts them there", env)
	if len(answer.Near) == 0 || env == defaultEnvironment {
		return text
	}
	return fmt.Sprintf("%s.\nThere is also %s, which was not touched. Did you mean %s? `tutti code delete %s` takes the new one away",
		text, strings.Join(answer.Near, ", "), strings.Join(answer.Near, " or "), env)
}

// nearEnvironments are those whose names look like a new one's, as far as the caller may see them. It is advice: a caller who
// may not list environments gets none.
func nearEnvironments(ctx context.Context, client *api.Client, deployed api.Deployed) (near []string) {
	if !deployed.NewEnvironment {
		return nil
	}
	all, err := api.EnvironmentList.Call(ctx, client, api.Nothing{})
	if err != nil {
		return nil
	}
	for _, v := range all.Items {
		if looksLike(deployed.Environment, v.Environment) {
			near = append(near, v.Environment)
		}
	}
	return near
}

// looksLike says whether one name may be the other one mistyped. Names that differ in their numbers alone are meant so:
// feature_12 and feature_13 are two branches. Of feature_dns and feature_tls only the last words are compared.
func looksLike(a, b string) bool {
	if a == b || withoutDigits(a) == withoutDigits(b) {
		return false
	}
	if i, j := strings.LastIndexByte(a, '_'), strings.LastIndexByte(b, '_'); i >= 0 && i == j && strings.EqualFold(a[:i], b[:j]) {
		a, b = a[i+1:], b[j+1:]
	}
	return strings.EqualFold(a, b) || min(len(a), len(b)) >= shortestAlike && len(fault.Near(a, []string{b})) > 0
}

// shortestAlike is the length from which names of which a letter differs look alike.
const shortestAlike = 3

func withoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, s)
}

// explain adds to an error of what is deployed what can be done.
func (s *source) explain(err error) error {
	out, ok := errors.AsType[*code.LinksOut](err)
	if !ok {
		return err
	}
	if s.cloned {
		return fault.Wrap(fault.Invalid, err,
			"%s. What they lead to is not in the repository: put it there, or clone the repository and deploy the directory with --follow-links", fault.Detail(err))
	}
	if slices.ContainsFunc(out.Links, func(l code.LinkOut) bool { return l.Real == "" }) {
		return fault.Wrap(fault.Invalid, err, "%s. Remove links that lead to nothing; --follow-links copies into the version what the others lead to",
			fault.Detail(err))
	}
	return fault.Wrap(fault.Invalid, err, "%s. With --follow-links what they lead to is copied into the version; a directory of modules can be named with --base-module-path, or in the modulepath of environment.conf", fault.Detail(err))
}

// lookAtPuppetfile warns of modules that are named and not there.
func (s *source) lookAtPuppetfile(a *app, bundle *code.Bundle) error {
	missing, err := bundle.MissingModules()
	if err != nil || len(missing) == 0 {
		return err
	}
	where := "in " + s.dir
	if s.cloned {
		where = "in a clone of the repository"
	}
	are := "are"
	if len(missing) == 1 {
		are = "is"
	}
	text := fmt.Sprintf("%s of the Puppetfile %s not there: %s. Run `r10k puppetfile install` (or `g10k -puppetfile`) %s, then deploy that directory again",
		fault.Count(len(missing), "module"), are, someNames(missing, shownNames), where)
	s.warnings = append(s.warnings, text)
	a.hint("warning: %s", text)
	return nil
}

func copies(bundle *code.Bundle) (links []copiedLink) {
	for _, c := range bundle.Copied {
		links = append(links, copiedLink(c))
	}
	return links
}

// shownCopies is how many copied links are said one by one.
const shownCopies = 10

func hintCopies(a *app, bundle *code.Bundle) {
	if len(bundle.Copied) == 0 {
		return
	}
	files := 0
	for i, c := range bundle.Copied {
		files += c.Files
		if i < shownCopies {
			a.hint("  %s is a copy of %s: %s", c.Path, c.From, fault.Count(c.Files, "file"))
		}
	}
	a.hint("Followed %s out of the directory and copied %s", fault.Count(len(bundle.Copied), "link"), fault.Count(files, "file"))
}
