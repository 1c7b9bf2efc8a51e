package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

var codeCommand = asking{noun{
	use: "code", short: "Deploy Puppet code and see what is deployed",
	verbs: []declared{codeDeploy, codeList, codeVersions, codeShow, codeStatus, codeSpread, codeRemove, codeSource},
}}

type codeDeployInput struct {
	options        code.BuildOptions
	engine         string
	force, noCheck bool

	wait, all, dryRun bool // of environments that are branches of sources
}

var codeDeploy = verb[codeDeployInput]{
	use: "deploy ENVIRONMENT DIR|GIT-URL[@REF] | ENVIRONMENT...", short: "Make a directory or a git ref the version of an environment",
	args: environmentsOrDir,
	long: `Make a directory or a git ref the version of an environment. What the server does not have yet is uploaded; identical
files and identical trees are stored once. Deploying an earlier tree again moves the environment back to it.

environment.conf, the module path and hiera.yaml are honoured. Modules from absolute directories of the module path become
part of the version; what $basemodulepath stands for is said with --base-module-path. A Puppetfile is not resolved: run
r10k or g10k first and deploy the directory. Modules that it names and that are not there are said.

A version holds only what is in the directory. A link that leads out of it, such as one to a module of Debian
(/usr/share/puppet/modules), is refused; with --follow-links what it leads to is copied into the version. Links inside of
the directory stay links.

An environment that is not there yet is made, and that is said, with the names of environments that look like it.

Before it is deployed, the code is checked: manifests, templates, YAML and JSON that differ from what was checked last are read
by Puppet's own parsers, and one node of each set of classes that the change touches is compiled for. Code with mistakes is
refused, with exit code 4, and the environment stays as it is. --force deploys it nevertheless, --no-check looks for nothing.
See docs/deploy-check.md.

Without a directory or URL, environments that are branches of a source (tutti code source) are deployed from there by the server, whether
or not the branch changed. --wait waits for the end of these deploys, with exit code 4 if one failed; --all means all of them, --dry-run
only lists them. Of two words, the second one is a directory or URL, unless one of these three is given.

The environment keeps the Puppet installation that compiles it (tutti engine list), unless --engine names another one.

The commit of a directory is recorded with its version when HEAD holds that directory and nothing in it is changed: for the
root of a git work tree or a directory that git tracks below it, not for one that only lies inside somebody else's.`,
	example: `  tutti code deploy production ./control-repo
  tutti code deploy production https://git.example.test/control.git@main
  tutti code deploy production . --base-module-path /usr/share/puppet/modules
  tutti code deploy production . --follow-links
  tutti code deploy production staging --wait`,
	flags: func(f flagSet, in *codeDeployInput) {
		codeFlags(f, &in.options)
		engineFlag(f, &in.engine)
		f.BoolVar(&in.force, "force", false, "deploy in spite of mistakes, and say them")
		f.BoolVar(&in.noCheck, "no-check", false, "do not look for mistakes")
		f.BoolVarP(&in.wait, "wait", "w", false, "of environments of sources: wait until they are deployed")
		f.BoolVar(&in.all, "all", false, "all environments of sources")
		f.BoolVar(&in.dryRun, "dry-run", false, "of environments of sources: say which would be deployed")
	},
	run: func(ctx context.Context, c *call, in *codeDeployInput) error {
		if fromSources(c.args, in, c.tools.name) {
			return deploySources(ctx, c, in)
		}
		if in.force && in.noCheck {
			return usageError{fault.New(fault.Invalid, "--force says the mistakes that it finds and --no-check looks for none: give one of them")}
		}
		if isCode(c.args[0]) && isEnvironment(c.args[1]) && !isCode(c.args[1]) {
			return usageError{&fault.Error{
				Kind: fault.Invalid, Detail: fmt.Sprintf("%.200q is no directory and no URL, and %.200q is: the environment is named first", c.args[1], c.args[0]),
				Hint: fmt.Sprintf("did you mean `tutti code deploy %s %.200s`?", c.args[1], c.args[0]),
			}}
		}
		if _, err := fleet.ParseEnvironment(c.args[0]); err != nil {
			return err // before anything is read and uploaded
		}
		client, err := c.client()
		if err != nil {
			return err
		}
		source, bundle, err := storeCode(ctx, c.app, client, c.args[1], in.options)
		if err != nil {
			return err
		}
		defer source.close()
		bundle.Manifest.Engine = in.engine
		version, err := deploy(ctx, client, c.args[0], source, bundle, checkMode(in.force, in.noCheck))
		if refused, ok := errors.AsType[*api.CheckFailed](err); ok {
			return refusedCode(c.app, c.args[0], refused.Check, source.warnings)
		}
		if err != nil {
			return err
		}
		answer := deployAnswer{
			Deployed: version, Near: nearEnvironments(ctx, client, version), Copied: copies(bundle), Warnings: source.warnings, Released: someReleased(ctx, client),
		}
		if c.printer().ForPrograms() {
			return c.printer().Thing(answer)
		}
		return printDeployed(c.app, answer)
	},
}

func codeFlags(f flagSet, options *code.BuildOptions) {
	f.BoolVar(&options.FollowLinks, "follow-links", false, "copy what links out of the directory lead to, into the version")
	f.StringSliceVar(&options.BaseModulePath, "base-module-path", nil,
		"directories of modules that $basemodulepath stands for; they become part of the version")
}

// storeCode reads the code of a directory or git ref, and has the server keep its files. Close the source.
func storeCode(ctx context.Context, a *app, client *api.Client, from string, options code.BuildOptions) (source, *code.Bundle, error) {
	source, err := openSource(ctx, from, options)
	if err != nil {
		return source, nil, err
	}
	bundle, err := storeFiles(ctx, a, client, &source, options)
	if err != nil {
		source.close()
	}
	return source, bundle, err
}

func storeFiles(ctx context.Context, a *app, client *api.Client, source *source, options code.BuildOptions) (*code.Bundle, error) {
	began := time.Now()
	bundle, err := code.Build(ctx, source.dir, options)
	if err != nil {
		return nil, source.explain(err)
	}
	if !bundle.Manifest.IsControlRepository() {
		return nil, &fault.Error{
			Kind: fault.Invalid, Detail: source.dir + " has neither manifests, modules, environment.conf nor hiera.yaml: it is no control repository",
			Hint: "name the directory that has them",
		}
	}
	if len(options.BaseModulePath) > 0 && !usesBaseModules(bundle.Manifest) {
		a.hint("--base-module-path is not used: the modulepath in environment.conf does not name $basemodulepath")
	}
	a.hint("Read %s, %s, in %s", fault.Count(len(bundle.Manifest.Files), "file"), print.Bytes(bundle.Manifest.Size()), print.Duration(time.Since(began)))
	hintCopies(a, bundle)
	if err := source.lookAtPuppetfile(a, bundle); err != nil {
		return nil, err
	}
	sent, err := upload(ctx, a, client, bundle)
	if err == nil && sent > 0 {
		a.hint("Uploaded %s that the server did not have", fault.Count(sent, "file"))
	}
	return bundle, err
}

var codeList = verb[api.Nothing]{
	use: "list", short: "List environments and their versions", example: "  tutti code list",
	prints: aList,
	run: lists(api.EnvironmentList, func(*api.Nothing) print.Table[api.Version] {
		return versionTable("No environments. `tutti code deploy production DIR` makes one.", func(v api.Version) string { return v.Environment })
	}),
}

var codeVersions = verb[api.EnvironmentRequest]{
	use: "versions ENVIRONMENT", short: "List what was deployed to an environment, newest first",
	prints:  aList,
	example: "  tutti code versions production",
	into:    func(in *api.EnvironmentRequest, args []string) { in.Environment = args[0] },
	run: lists(api.VersionList, func(in *api.EnvironmentRequest) print.Table[api.Version] {
		return versionTable("Nothing was deployed to "+in.Environment+".", func(v api.Version) string { return v.ID })
	}),
}

func versionTable(empty string, name func(api.Version) string) print.Table[api.Version] {
	return print.Table[api.Version]{
		Columns: []string{"environment", "version", "commit", "engine", "files", "size", "deployed", "by", "from"},
		Spare:   []string{"from", "files", "size", "engine", "commit", "by"},
		Row: func(v api.Version) []any {
			return []any{
				v.Environment, print.ID(v.ID), print.ID(v.Commit), cmp.Or(v.Engine, code.DefaultEngine), v.Files, print.Size(v.Bytes), v.DeployedAt, v.Actor, v.Origin,
			}
		},
		Name:  name,
		Empty: empty,
	}
}

var codeRemove = verb[api.EnvironmentRequest]{
	use: "delete ENVIRONMENT", short: "Delete an environment; agents that ask for it are told it is unknown",
	destroys: lossOfEnvironment,
	example:  "  tutti code delete feature_tls",
	into:     func(in *api.EnvironmentRequest, args []string) { in.Environment = args[0] },
	run: does(api.EnvironmentDelete, func(in *api.EnvironmentRequest) string {
		return fmt.Sprintf("Environment %s is deleted. Deploying to it makes it again.", in.Environment)
	}),
}

// usesBaseModules says whether modules from outside are part of a version.
func usesBaseModules(m code.Manifest) bool {
	return slices.ContainsFunc(m.ModulePath, func(dir string) bool { return strings.HasPrefix(dir, code.BaseModules+"/") })
}

// isDir says whether a deploy's source is a directory rather than a repository.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
