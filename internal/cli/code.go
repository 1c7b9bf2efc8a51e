package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func (a *app) codeCommand() *cobra.Command {
	return a.withAccess(noun("code", "Deploy Puppet code and see what is deployed", a.codeDeploy(), a.codeList(),
		a.codeVersions(), a.codeStatus(), a.codeRemove()))
}

func (a *app) codeDeploy() *cobra.Command {
	var options code.BuildOptions
	var force, noCheck bool
	cmd := &cobra.Command{
		Use: "deploy ENVIRONMENT DIR|GIT-URL[@REF]", Short: "Make a directory or a git ref the version of an environment", Args: exactly(2),
		Long: `Make a directory or a git ref the version of an environment. What the server does not have yet is uploaded; identical
files and identical trees are stored once. Deploying an earlier tree again moves the environment back to it.

environment.conf, the module path and hiera.yaml are honoured. Modules from absolute directories of the module path become
part of the version; what $basemodulepath stands for is said with --base-module-path. A Puppetfile is not resolved: run
r10k or g10k first and deploy the directory.

Before it is deployed, the code is checked: manifests, templates, YAML and JSON that differ from what was checked last are read
by Puppet's own parsers, and one node of each set of classes that the change touches is compiled for. Code with mistakes is
refused, with exit code 4, and the environment stays as it is. --force deploys it nevertheless, --no-check looks for nothing.
See docs/deploy-check.md.

The commit of a directory is recorded with its version when HEAD holds that directory and nothing in it is changed: for the
root of a git work tree or a directory that git tracks below it, not for one that only lies inside somebody else's.`,
		Example: `  tutti code deploy production ./control-repo
  tutti code deploy production https://git.example.test/control.git@main
  tutti code deploy production . --base-module-path /usr/share/puppet/modules`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if force && noCheck {
				return usageError{fault.New(fault.Invalid, "--force says the mistakes that it finds and --no-check looks for none: give one of them")}
			}
			if _, err := fleet.ParseEnvironment(args[0]); err != nil {
				return err // before anything is read and uploaded
			}
			client, err := a.client()
			if err != nil {
				return err
			}
			source, bundle, err := storeCode(a, cmd.Context(), client, args[1], options)
			if err != nil {
				return err
			}
			defer source.close()
			version, err := deploy(cmd.Context(), client, args[0], source, bundle, checkMode(force, noCheck))
			if refused, ok := errors.AsType[*api.CheckFailed](err); ok {
				return refusedCode(a, args[0], refused.Check)
			}
			if err != nil {
				return err
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(version)
			}
			if version.Check != nil {
				printCheck(a, *version.Check)
			}
			_, err = fmt.Fprintf(a.system.Out, "%s is now version %s (%s, %s)\n", version.Environment, short(version.ID),
				count(version.Files, "file"), print.Bytes(version.Bytes))
			return err
		},
	}
	baseModuleFlag(cmd, &options)
	cmd.Flags().BoolVar(&force, "force", false, "deploy in spite of mistakes, and say them")
	cmd.Flags().BoolVar(&noCheck, "no-check", false, "do not look for mistakes")
	return cmd
}

func baseModuleFlag(cmd *cobra.Command, options *code.BuildOptions) {
	cmd.Flags().StringSliceVar(&options.BaseModulePath, "base-module-path", nil,
		"directories of modules that $basemodulepath stands for; they become part of the version")
}

// storeCode reads the code of a directory or git ref, and has the server keep its files. Close the source.
func storeCode(a *app, ctx context.Context, client *api.Client, from string, options code.BuildOptions) (source, *code.Bundle, error) {
	source, err := openSource(ctx, from)
	if err != nil {
		return source, nil, err
	}
	bundle, err := storeFiles(a, ctx, client, source, options)
	if err != nil {
		source.close()
	}
	return source, bundle, err
}

func storeFiles(a *app, ctx context.Context, client *api.Client, source source, options code.BuildOptions) (*code.Bundle, error) {
	began := time.Now()
	bundle, err := code.Build(ctx, source.dir, options)
	if err != nil {
		return nil, err
	}
	if len(options.BaseModulePath) > 0 && !usesBaseModules(bundle.Manifest) {
		a.hint("--base-module-path is not used: the modulepath in environment.conf does not name $basemodulepath")
	}
	a.hint("Read %s, %s, in %s", count(len(bundle.Manifest.Files), "file"), print.Bytes(bundle.Manifest.Size()), time.Since(began).Round(time.Millisecond))
	sent, err := upload(a, ctx, client, bundle)
	if err == nil && sent > 0 {
		a.hint("Uploaded %s that the server did not have", count(sent, "file"))
	}
	return bundle, err
}

func (a *app) codeList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List environments and their versions", Args: exactly(0), Example: "  tutti code list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := ask(cmd.Context(), a, api.EnvironmentList, api.Nothing{})
			if err != nil {
				return err
			}
			return print.List(a.printer(), list.Items, versionTable("No environments. `tutti code deploy production DIR` makes one."))
		},
	}
}

func (a *app) codeVersions() *cobra.Command {
	return &cobra.Command{
		Use: "versions ENVIRONMENT", Short: "List what was deployed to an environment, newest first", Args: exactly(1), Example: "  tutti code versions production",
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := ask(cmd.Context(), a, api.VersionList, api.EnvironmentRequest{Environment: args[0]})
			if err != nil {
				return err
			}
			return print.List(a.printer(), list.Items, versionTable("Nothing was deployed to "+args[0]+"."))
		},
	}
}

func versionTable(empty string) print.Table[api.Version] {
	now := time.Now()
	return print.Table[api.Version]{
		Columns: []string{"environment", "version", "commit", "files", "size", "deployed", "by", "from"},
		Row: func(v api.Version) []string {
			return []string{v.Environment, short(v.ID), short(v.Commit), fmt.Sprint(v.Files), print.Bytes(v.Bytes), print.Ago(v.DeployedAt, now), v.Actor, v.Origin}
		},
		Name:  func(v api.Version) string { return v.Environment },
		Empty: empty,
	}
}

func (a *app) codeRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove ENVIRONMENT", Short: "Remove an environment; agents that ask for it are told it is unknown", Args: exactly(1),
		Example: "  tutti code remove feature_tls",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			if _, err := api.EnvironmentDelete.Call(cmd.Context(), client, api.EnvironmentRequest{Environment: args[0]}); err != nil {
				return err
			}
			a.hint("Environment %s is removed. Deploying to it makes it again.", args[0])
			return nil
		},
	}
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
