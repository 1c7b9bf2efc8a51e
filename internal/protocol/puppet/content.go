package puppet

import (
	"net/http"
	"strings"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fleet"
)

// content sends a file of the environment's current version.
func (fs *files) content(c *call) error {
	if _, err := c.accepted(fileFormats); err != nil {
		return err
	}
	tree, err := fs.tree(c)
	if err != nil {
		return err
	}
	file, err := tree.Content(splitMount(c.key))
	if isNotFound(err) {
		return c.notThere()
	}
	if err != nil {
		return err
	}
	return fs.send(c, file)
}

// static sends a file of the version that a static catalog was made of.
func (fs *files) static(c *call) error {
	name, id := c.query.Get("environment"), c.query.Get("code_id")
	if name == "" || id == "" {
		return badRequest("A /static_file_content request requires an environment, a code-id, and a file-path")
	}
	if err := c.setEnvironment(name); err != nil {
		return err
	}
	version, err := fleet.ParseDigest(id)
	if err != nil {
		return badRequest("the code_id is none of this server's: %s", err)
	}
	tree, err := fs.version(c, version)
	if isNotFound(err) {
		return problemf(http.StatusNotFound, resourceNotFound, "environment '%s' has no version %s", c.env, version.Short())
	}
	if err != nil {
		return err
	}
	file, err := tree.StaticContent(strings.TrimLeft(c.key, "/"))
	switch {
	case isNotFound(err):
		return c.notThere()
	case isDenied(err): // the path is not for agents, whoever they are
		return problemf(http.StatusForbidden, runtimeError,
			"Request Denied: A /static_file_content request must be a file within the files directory of a module.")
	case err != nil:
		return err
	}
	return fs.send(c, file)
}

func (fs *files) send(c *call, file code.File) error {
	if file.Kind != code.Regular {
		return c.notThere()
	}
	if c.wantsWhole() && file.Size <= smallBlob {
		return fs.blobs.small(c, file.Digest)
	}
	return fs.blobs.send(c, file.Digest)
}
