package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var codeSource = noun{
	use: "source", short: "Deploy environments from the branches of git repositories",
	verbs: []declared{sourceAdd, sourceList, sourceShow, sourceSync, sourceRemove},
}

type sourceAddInput struct {
	request                              api.SourceAddRequest
	interval                             time.Duration
	keyFile, knownHostsFile, webhookFile string
}

var sourceAdd = verb[sourceAddInput]{
	use: "add NAME GIT-URL", short: "Make the branches of a git repository environments",
	long: `Make the branches of a git repository environments. The server fetches the repository by itself: when a webhook says that somebody
pushed, and, with --interval, now and then. Each branch that changed is deployed, after the check that every deploy has.

The environment has the name of the branch; what is neither a letter, a digit nor an underscore becomes an underscore. --branch names the
branches: a pattern in which * stands for anything, or /a regular expression/; with ! before it, these are left out.

The modules of a Puppetfile are installed by r10k on the server, in a cell. The key and the secret are kept sealed and never shown.
See docs/code-from-git.md.`,
	example: `  tutti code source add control https://git.example.test/control.git
  tutti code source add control git@git.example.test:control.git --key-file deploy_key --webhook-secret-file secret
  tutti code source add web https://git.example.test/web.git --prefix web --branch 'release/*' --branch '!/.*-wip/' --interval 5m`,
	flags: func(f flagSet, in *sourceAddInput) {
		f.StringVar(&in.request.Prefix, "prefix", "", "begin the names of environments with this and an underscore")
		f.StringSliceVar(&in.request.Branches, "branch", nil, "only these branches: a pattern, /a regular expression/, or ! and one of these; may be repeated")
		f.StringVar(&in.keyFile, "key-file", "", "file with a private key for ssh (a deploy key)")
		f.StringVar(&in.knownHostsFile, "known-hosts-file", "",
			"file with the keys of the git server, as ssh-keyscan prints them; without it the first one is believed")
		f.StringVar(&in.webhookFile, "webhook-secret-file", "", "file with the secret that webhooks are signed with")
		f.DurationVar(&in.interval, "interval", 0, "look at the repository so often, for example 5m; without it only webhooks and commands do")
		f.BoolVar(&in.request.Submodules, "submodules", false, "fetch submodules, too")
		f.BoolVar(&in.request.NoPuppetfile, "no-puppetfile", false, "do not resolve the Puppetfile")
		f.BoolVar(&in.request.Purge, "purge", false, "delete the environments of deleted branches")
		f.BoolVar(&in.request.Replace, "replace", false, "change a source that there is; its key and secrets stay unless others are given")
	},
	run: func(ctx context.Context, c *call, in *sourceAddInput) error {
		request := in.request
		request.Name, request.URL, request.Interval = c.args[0], c.args[1], int64(in.interval.Seconds())
		for _, file := range []struct {
			purpose, path string
			into          *string
		}{
			{"the private key", in.keyFile, &request.Key},
			{"the host keys", in.knownHostsFile, &request.KnownHosts},
			{"the webhook's secret", in.webhookFile, &request.WebhookSecret},
		} {
			if file.path == "" {
				continue
			}
			text, err := readNamed(file.purpose, file.path)
			if err != nil {
				return err
			}
			*file.into = string(text)
		}
		return showAnswer(ctx, c.app, api.SourceAdd, request, func(to print.Printer, s api.CodeSource) error {
			to.Hint("Source %s: the server looks at %s now. `tutti code source show %s` says what became of its branches", s.Name, s.URL, s.Name)
			if s.HasWebhook {
				to.Hint("Webhooks go to /code-manager/v1/webhook?source=%s&type=github (or gitlab, gitea, bitbucket, bitbucket-server, azure) on the server", s.Name)
			}
			return nil
		})
	},
}

var sourceList = verb[api.Nothing]{
	use: "list", short: "List the git repositories whose branches are environments", example: "  tutti code source list",
	prints: aList,
	run: lists(api.SourceList, func(*api.Nothing) print.Table[api.CodeSource] {
		return print.Table[api.CodeSource]{
			Columns: []string{"source", "url", "branches", "prefix", "interval", "looked", "trouble"},
			Spare:   []string{"prefix", "interval", "branches", "looked"},
			Row: func(s api.CodeSource) []any {
				return []any{s.Name, s.URL, first(strings.Join(s.Branches, " "), "all"), s.Prefix, everyText(s.Interval), s.LookedAt, s.Trouble}
			},
			Name:  func(s api.CodeSource) string { return s.Name },
			Empty: "No sources. `tutti code source add NAME GIT-URL` makes the branches of a repository environments.",
		}
	}),
}

func everyText(seconds int64) string {
	if seconds == 0 {
		return "never"
	}
	return print.Duration(time.Duration(seconds) * time.Second)
}

var sourceShow = verb[api.NameRequest]{
	use: "show NAME", short: "Show a source with its branches, and how the newest deploy of each ended", example: "  tutti code source show control",
	into: byName,
	run: shows(api.SourceShow, func(to print.Printer, s api.CodeSourceDetail) error {
		if err := sourceRows(to, s); err != nil {
			return err
		}
		for _, b := range s.Known {
			to.Line(branchLine(b))
		}
		for _, refused := range s.Refused {
			to.Hint("Not an environment: %s", refused)
		}
		return nil
	}),
}

var sourceRows = print.Rows(func(s api.CodeSourceDetail) [][]string {
	looked := "not yet"
	if s.LookedAt != nil {
		looked = print.Ago(*s.LookedAt, time.Now())
	}
	return [][]string{
		{"Source", s.Name},
		{"URL", s.URL},
		{"Branches", first(strings.Join(s.Branches, " "), "all")},
		{"Prefix", s.Prefix},
		{"Looked at", looked},
		{"Interval", everyText(s.Interval)},
		{"Trouble", s.Trouble},
	}
})

// branchLine says how an environment stands.
func branchLine(b api.CodeBranch) string {
	line := fmt.Sprintf("%s  branch %s  %s", b.Environment, b.Branch, b.State)
	if b.Commit != "" {
		line += fmt.Sprintf("  commit %s is version %s", short(b.Commit), short(b.Version))
	}
	if b.GoneAt != nil {
		line += "  the branch was deleted, the environment stays (`tutti code delete " + b.Environment + "`)"
	}
	if b.Error != "" {
		line += "\n  " + print.OneLine(b.Error)
	}
	return line
}

var sourceSync = verb[api.SourceSyncRequest]{
	use: "sync NAME", short: "Look at a source's repository now and deploy the branches that changed",
	example: "  tutti code source sync control --wait",
	into:    func(in *api.SourceSyncRequest, args []string) { in.Name = args[0] },
	flags: func(f flagSet, in *api.SourceSyncRequest) {
		f.BoolVar(&in.Wait, "wait", false, "wait until the deploys have ended; exit code 4 if one failed")
		f.BoolVar(&in.Purge, "purge", false, "delete the environments of deleted branches")
	},
	run: func(ctx context.Context, c *call, in *api.SourceSyncRequest) error {
		answer, err := ask(ctx, c.app, api.SourceSync, *in)
		if err != nil {
			return err
		}
		if c.printer().ForPrograms() {
			if err := c.printer().Thing(answer); err != nil {
				return err
			}
			return branchesEnded(answer.Deploys, in.Wait)
		}
		if len(answer.Deploys)+len(answer.Purged) == 0 {
			c.hint("Nothing changed")
		}
		if err := printBranches(c, answer.Deploys); err != nil {
			return err
		}
		for _, b := range answer.Gone {
			c.hint("%s", branchLine(b))
		}
		for _, env := range answer.Purged {
			c.hint("%s is deleted: so was its branch", env)
		}
		for _, refused := range answer.Refused {
			c.hint("Not an environment: %s", refused)
		}
		return branchesEnded(answer.Deploys, in.Wait)
	},
}

func printBranches(c *call, branches []api.CodeBranch) error {
	for _, b := range branches {
		if _, err := fmt.Fprintln(c.system.Out, branchLine(b)); err != nil {
			return err
		}
	}
	return nil
}

// branchesEnded is the outcome of deploys that were waited for.
func branchesEnded(branches []api.CodeBranch, waited bool) error {
	failed := 0
	for _, b := range branches {
		if b.State == "failed" {
			failed++
		}
	}
	if !waited || failed == 0 {
		return nil
	}
	return jobOutcome{exitSomeFailed, fmt.Sprintf("%s failed of %d: the environments stay as they were", fault.Count(failed, "deploy"), len(branches))}
}

var sourceRemove = verb[api.NameRequest]{
	use: "remove NAME", short: "Forget a source and its key; its environments stay", example: "  tutti code source remove control",
	into: byName,
	destroys: func(ctx context.Context, c *call, in *api.NameRequest) (string, error) {
		s, err := ask(ctx, c.app, api.SourceShow, *in)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("forget the source %s of %s with its key; %s stay", s.Name, s.URL, fault.Count(len(s.Known), "environment")), nil
	},
	run: does(api.SourceRemove, func(in *api.NameRequest) string {
		return fmt.Sprintf("Source %s is forgotten; its environments stay as they are.", in.Name)
	}),
}

// fromSources says whether a deploy means environments of sources, and not a directory or a URL. puppet-code knows nothing else.
func fromSources(args []string, in *codeDeployInput, tool string) bool {
	return in.all || in.dryRun || in.wait || len(args) != 2 || tool != ""
}

// deploySources deploys environments from their branches.
func deploySources(ctx context.Context, c *call, in *codeDeployInput) error {
	for _, flag := range []string{"force", "no-check", "engine", "follow-links", "base-module-path"} {
		if c.changed(flag) {
			return usageError{
				fault.New(fault.Invalid, "--%s is for the deploy of a directory or a git URL: %s deploys from sources", flag,
					strings.Join(append([]string{"this"}, c.args...), " ")),
			}
		}
	}
	request := api.SourceDeployRequest{Environments: c.args, All: in.all || in.dryRun && len(c.args) == 0, Wait: in.wait && !in.dryRun, DryRun: in.dryRun}
	answer, err := ask(ctx, c.app, api.SourceDeploy, request)
	if fault.Is(err, fault.NotFound) && len(c.args) == 1 && isDir(c.args[0]) {
		err = hinted(err, fmt.Sprintf("to deploy the directory: `tutti code deploy production %s`", c.args[0]))
	}
	if err != nil {
		return err
	}
	if c.printer().ForPrograms() {
		err = c.printer().Thing(answer.Items)
	} else {
		c.hint("Found %s.", fault.Count(len(answer.Items), "environment"))
		err = printBranches(c, answer.Items)
	}
	if err != nil {
		return err
	}
	return branchesEnded(answer.Items, request.Wait)
}

// environmentsOrDir are the arguments of a deploy.
func environmentsOrDir(cmd *cobra.Command, args []string) error {
	all, _ := cmd.Flags().GetBool("all")
	dryRun, _ := cmd.Flags().GetBool("dry-run")
	switch {
	case all && len(args) > 0:
		return usageError{fault.New(fault.Invalid, "--all means all environments of sources: name none, or leave --all out")}
	case len(args) == 0 && !all && !dryRun:
		return usageError{fault.New(fault.Invalid, "name an environment and a directory or git URL, or environments of sources; usage: %s", cmd.UseLine())}
	case len(args) == 1 && isCode(args[0]) && !isEnvironment(args[0]):
		return usageError{&fault.Error{
			Kind: fault.Invalid, Detail: fmt.Sprintf("no environment is named that %.200q is to be the code of", args[0]),
			Hint: fmt.Sprintf("`tutti code deploy production %.200s`", args[0]),
		}}
	}
	return nil
}
