package cli

import (
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

func (a *app) fileCommand() *cobra.Command {
	return a.withAccess(noun("file", "Send files to nodes", a.fileSend()))
}

func (a *app) fileSend() *cobra.Command {
	o := orderFlags{}
	cmd := &cobra.Command{
		Use: "send FILE DESTINATION", Short: "Put a file on nodes", Args: exactly(2),
		Long: `Put a file on nodes, under an absolute path there; with a slash at its end, into that directory, which is made.
What stands there is replaced. The node checks the file's SHA-256 before.

` + targetHelp + `

` + exitHelp,
		Example: `  tutti file send ./hosts.allow /etc/hosts.allow --group 'Web servers'
  tutti file send ./logo.png /srv/www/ --targets web-1.example.test,web-2.example.test`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !absolute(args[1]) {
				return usageError{fault.New(fault.Invalid, "the destination must be an absolute path on the node, such as /etc/motd, not %.200q", args[1])}
			}
			upload, err := openLocalFile(a, args[0])
			if err != nil {
				return err
			}
			entries := sentFile(upload, args[1])
			return launch(a, cmd, o, newJob{
				does: "file " + upload.name, client: upload.client, prepare: upload.send,
				send: ordered(api.JobFile, func(order api.JobOrder) api.JobFileRequest {
					return api.JobFileRequest{JobOrder: order, Files: entries}
				}),
			})
		},
	}
	addOrderFlags(a, cmd, &o)
	return cmd
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
