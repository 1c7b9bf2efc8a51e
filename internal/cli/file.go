package cli

import (
	"context"
	"path"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

var fileCommand = asking{noun{use: "file", short: "Send files to nodes, and fetch them", verbs: []declared{fileSend, fileGet}}}

var fileSend = verb[orderFlags]{
	use: "send FILE DESTINATION", short: "Put a file on nodes", aliases: []string{"upload"},
	prints: results,
	long: `Put a file on nodes, under an absolute path there; with a slash at its end, into that directory, which is made.
What stands there is replaced. The node checks the file's SHA-256 before.

` + targetHelp + `

` + exitHelp,
	example: `  tutti file send ./hosts.allow /etc/hosts.allow --group 'Web servers'
  tutti file send ./logo.png /srv/www/ --targets web-1.example.test,web-2.example.test`,
	flags: addOrderFlags,
	run: func(ctx context.Context, c *call, in *orderFlags) error {
		if !absolute(c.args[1]) {
			return usageError{fault.New(fault.Invalid, "the destination must be an absolute path on the node, such as /etc/motd, not %.200q", c.args[1])}
		}
		upload, err := openLocalFile(c.app, c.args[0])
		if err != nil {
			return err
		}
		entries := sentFile(upload, c.args[1])
		return launch(ctx, c.app, *in, newJob{
			does: "file " + upload.name, client: upload.client, prepare: upload.send,
			send: ordered(api.JobFile, func(order api.JobOrder) api.JobFileRequest {
				return api.JobFileRequest{JobOrder: order, Files: entries}
			}),
		})
	},
}

// absolute says whether a path is one on some node: of Unix or of Windows.
func absolute(name string) bool {
	drive := len(name) > 2 && name[1] == ':' && (name[2] == '\\' || name[2] == '/')
	return strings.HasPrefix(name, "/") || drive
}

// sentFile is what a node makes for one file.
func sentFile(f *localFile, destination string) []api.JobFileEntry {
	if !strings.HasSuffix(destination, "/") {
		return []api.JobFileEntry{{Kind: "file", Destination: destination, Digest: f.digest}}
	}
	return []api.JobFileEntry{
		{Kind: "directory", Destination: strings.TrimSuffix(destination, "/")},
		{Kind: "file", Destination: path.Join(destination, f.name), Digest: f.digest},
	}
}
