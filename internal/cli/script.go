package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

var scriptCommand = asking{noun{use: "script", short: "Run scripts on nodes", verbs: []declared{scriptRun}}}

var scriptRun = verb[orderFlags]{
	use: "run FILE [ARGUMENT]...", short: "Run a script of yours on nodes", args: atLeastOne("which script?"),
	prints: results,
	long: `Send a script to nodes and run it there with the given arguments. Flags of the script itself come after --.

` + targetHelp + `

` + exitHelp,
	example: `  tutti script run ./mend.sh --targets web-1.example.test
  tutti script run ./rotate.rb --where 'facts.role = "log"' -- --keep 7`,
	flags: addOrderFlags,
	run: func(ctx context.Context, c *call, in *orderFlags) error {
		upload, err := openLocalFile(c.app, c.args[0])
		if err != nil {
			return err
		}
		if err := checkScript(c.args[0]); err != nil {
			return err
		}
		return launch(ctx, c.app, *in, newJob{
			does: "script " + upload.name, client: upload.client, prepare: upload.send,
			send: ordered(api.JobScript, func(order api.JobOrder) api.JobScriptRequest {
				return api.JobScriptRequest{JobOrder: order, Name: upload.name, Digest: upload.digest, Arguments: c.args[1:]}
			}),
		})
	},
}

// atLeastOne wants an argument.
func atLeastOne(question string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError{fault.New(fault.Invalid, "%s usage: %s", question, cmd.UseLine())}
		}
		return nil
	}
}

// localFile is a file on this machine that nodes are to have.
type localFile struct {
	client     *api.Client
	path, name string
	digest     string
}

// openLocalFile reads a file's digest.
func openLocalFile(a *app, path string) (*localFile, error) {
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	f := &localFile{client: client, path: path, name: filepath.Base(path)}
	file, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return nil, unread("the file", path, err)
	}
	f.digest = hex.EncodeToString(sum.Sum(nil))
	return f, nil
}

func openFile(path string) (*os.File, error) {
	file, err := openNamed("the file", path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, usageError{fault.New(fault.Invalid, "%s is no file: one regular file is sent at a time", path)}
	}
	return file, nil
}

// send stores the file on the server. It must still be the one that was planned with.
func (f *localFile) send(ctx context.Context) error {
	file, err := openFile(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	stored, err := api.JobUpload.Send(ctx, f.client, file)
	if err != nil {
		return err
	}
	if stored.Digest != f.digest {
		return fault.New(fault.Conflict, "%s was changed while it was read; nothing was started", f.path)
	}
	return nil
}
