package cli

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// maxGot is the largest file that is fetched: as base64 it is less than what an agent keeps of a command's output.
const maxGot = 6_000_000

type fileGetFlags struct {
	orderFlags
	to string
}

var fileGet = verb[fileGetFlags]{
	use: "get PATH", short: "Fetch a file from nodes",
	prints: results,
	long: fmt.Sprintf(`Fetch a file from nodes and keep it as DIR/NODE/PATH; what stands there is replaced. The content's SHA-256 is checked.
A file has at most %d bytes. The nodes are Unix, with sh, head, base64 and sha256sum.

It is a command that the nodes run, as root mostly: it takes the permission command:run, and the agent's policy must allow
the action "command run". The content is stored as the output of its job, and whoever may read jobs may read it.

`, maxGot) + targetHelp + `

` + exitHelp,
	example: `  tutti file get /etc/ntp.conf --group 'Web servers' --to ./ntp
  tutti file get /var/log/syslog.1 --targets web-1.example.test --to /tmp -o json`,
	flags: func(f flagSet, in *fileGetFlags) {
		addOrderFlags(f, &in.orderFlags)
		f.StringVar(&in.to, "to", "", "the directory below which each node gets one of its own; it is made; it must be given")
	},
	run: func(ctx context.Context, c *call, in *fileGetFlags) error {
		name := c.args[0]
		switch {
		case !strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.ContainsAny(name, "\x00\n"):
			return usageError{fault.New(fault.Invalid, "the path must be that of a file on a Unix node, such as /etc/motd, not %.200q", name)}
		case in.to == "":
			return usageError{fault.New(fault.Invalid, "where to? give --to DIR; the file of a node is kept as DIR/NODE%s", path.Clean(name))}
		case isFile(in.to):
			return usageError{fault.New(fault.Invalid, "--to %s is a file; give a directory, below which each node gets one of its own", in.to)}
		case in.noWait:
			return usageError{fault.New(fault.Invalid, "with --no-wait nobody would be there to keep the files; leave it out")}
		}
		got := &gotFiles{app: c.app, name: path.Clean(name), to: in.to}
		return launch(ctx, c.app, in.orderFlags, newJob{
			does: "get " + name, receive: got.receive,
			send: ordered(api.JobCommand, func(order api.JobOrder) api.JobCommandRequest {
				return api.JobCommandRequest{JobOrder: order, Command: fetching(name)}
			}),
		})
	},
}

// fetching is a command that prints a file's SHA-256 and its content as base64. Both are of one reading, of a file that grows, too.
func fetching(name string) string {
	quoted := "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	return fmt.Sprintf(`f=%s
[ -e "$f" ] || { echo "there is no such file" >&2; exit 3; }
[ -f "$f" ] || { echo "it is no regular file" >&2; exit 3; }
[ -r "$f" ] || { echo "it may not be read" >&2; exit 3; }
n=$(wc -c <"$f") && [ "$n" -le %d ] || { echo "it has $n bytes, at most %d can be fetched: compress or split it" >&2; exit 3; }
b=$(head -c %d <"$f" | base64 | tr -d '\n') && s=$(printf %%s "$b" | base64 -d | sha256sum) || exit 3
printf '%%s\n%%s\n' "${s%%%% *}" "$b"`, quoted, maxGot, maxGot, maxGot)
}

// gotFile is what became of one node's file.
type gotFile struct {
	Node    string `json:"node"`
	File    string `json:"file,omitempty"` // where it is kept; missing: it is not
	Bytes   *int64 `json:"bytes,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// gotFiles keeps what nodes sent.
type gotFiles struct {
	*app
	name, to string
}

// receive keeps the files of a job that is over.
func (g *gotFiles) receive(ctx context.Context, w *watcher) error {
	if err := os.MkdirAll(g.to, 0o755); err != nil { //nolint:gosec // who asks says where; below it are directories of the caller alone
		return unwritten("to --to", g.to, err)
	}
	root, err := os.OpenRoot(g.to)
	if err != nil {
		return unwritten("to --to", g.to, err)
	}
	defer func() { _ = root.Close() }()
	var files []gotFile
	failed := 0
	for _, r := range sortedRuns(w.runs) {
		result, err := resultOf(ctx, g.app, w.client, w.job.ID, r)
		if err != nil {
			return err
		}
		file := gotFile{Node: r.Node, Problem: r.Reason}
		if said := strings.TrimSpace(result.Stderr); r.State != "succeeded" && said != "" {
			file.Problem = print.OneLine(said)
		}
		if r.State == "succeeded" {
			if err := g.keep(root, result, &file); err != nil {
				file.Problem = explain(err)
				failed++
			}
		}
		files = append(files, file)
	}
	if err := print.List(g.printer(), files, gotTable()); err != nil {
		return err
	}
	if failed > 0 {
		return jobOutcome{exitSomeFailed, fmt.Sprintf("the files of %s could not be kept", fault.Count(failed, "node"))}
	}
	return nil
}

// keep checks a content and writes it, as a whole.
func (g *gotFiles) keep(root *os.Root, result runResult, file *gotFile) error {
	want, text, _ := strings.Cut(result.Stdout, "\n")
	content, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	sum := sha256.Sum256(content)
	if digest := hex.EncodeToString(sum[:]); err != nil || digest != want || result.Output.Cut {
		return errors.New("what came is not the whole file: its SHA-256 is another one")
	}
	name := path.Join(result.Node, g.name)
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	part := name + ".part"
	if err := root.WriteFile(part, content, 0o600); err != nil {
		return err
	}
	if err := root.Rename(part, name); err != nil {
		return errors.Join(err, root.Remove(part))
	}
	size := int64(len(content))
	file.File, file.Bytes, file.SHA256, file.Problem = path.Join(g.to, name), &size, want, ""
	return nil
}

func gotTable() print.Table[gotFile] {
	return print.Table[gotFile]{
		Columns: []string{"node", "bytes", "file", "problem"},
		Row: func(f gotFile) []any {
			var size any
			if f.Bytes != nil {
				size = print.Size(*f.Bytes)
			}
			return []any{f.Node, size, f.File, f.Problem}
		},
		Name:  func(f gotFile) string { return f.File },
		Empty: "No nodes.",
	}
}
