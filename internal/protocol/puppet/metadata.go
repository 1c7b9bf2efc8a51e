package puppet

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fleet"
)

// files are those of environments' code, as agents ask for them.
type files struct {
	checkin interface {
		HeldAt(ctx context.Context, node fleet.Certname) (c checkin.Code, ok bool, err error)
	}
	trees    Trees
	versions Versions
	blobs    blobs
	answers  *answerCache
	deployed deployedVersions
}

// metadata describes one file.
func (fs *files) metadata(c *call) error {
	f, err := c.accepted(dataFormats)
	if err != nil {
		return err
	}
	tree, err := fs.tree(c)
	if err != nil {
		return err
	}
	mount, path := splitMount(c.key)
	meta, err := tree.Metadata(c.ctx(), mount, path, metadataOptions(c))
	if isNotFound(err) {
		return c.notThere()
	}
	if err != nil {
		return err
	}
	return c.value(f, meta)
}

// metadatas describes a file and what is below it.
func (fs *files) metadatas(c *call) error {
	f, err := c.accepted(dataFormats)
	if err != nil {
		return err
	}
	opt, err := searchOptions(c)
	if err != nil {
		return err
	}
	tree, err := fs.tree(c)
	if err != nil {
		return err
	}
	return fs.cached(c, f, tree, func() (any, error) {
		mount, path := splitMount(c.key)
		all, err := tree.Metadatas(c.ctx(), mount, path, opt)
		if isNotFound(err) {
			return nil, problemf(http.StatusNotFound, resourceNotFound,
				"Could not find instances in file_metadata with '%s'", printable(c.key))
		}
		return all, err
	})
}

// tree is the current version of the environment that was asked for; for a node that is
// held at a version, that one.
func (fs *files) tree(c *call) (*code.Tree, error) {
	if c.actor.Kind == fleet.NodeActor {
		held, ok, err := fs.checkin.HeldAt(c.ctx(), fleet.Certname(c.actor.Name))
		if err != nil {
			return nil, err
		}
		if ok && held.Environment == c.env {
			return fs.trees.Tree(c.ctx(), c.env, held.Version)
		}
	}
	tree, err := fs.trees.Current(c.ctx(), c.env)
	if isNotFound(err) {
		return nil, c.noEnvironment()
	}
	return tree, err
}

func (c *call) notThere() error {
	return problemf(http.StatusNotFound, resourceNotFound, "Could not find %s %s", c.route, printable(c.key))
}

// splitMount takes the mount off a key: modules/ntp/x is ntp/x on modules.
// Slashes around the path mean nothing.
func splitMount(key string) (mount, path string) {
	mount, path, _ = strings.Cut(strings.TrimLeft(key, "/"), "/")
	return mount, strings.Trim(path, "/")
}

// metadataOptions passes on what was asked for; the tree knows what is allowed.
func metadataOptions(c *call) code.MetadataOptions {
	return code.MetadataOptions{
		Links:             c.query.Get("links"),
		ChecksumType:      c.query.Get("checksum_type"),
		SourcePermissions: c.query.Get("source_permissions"),
	}
}

func searchOptions(c *call) (opt code.SearchOptions, err error) {
	opt.MetadataOptions = metadataOptions(c)
	opt.Ignore = c.query["ignore"]
	opt.Recurse = !slices.Contains([]string{"", "false"}, c.query.Get("recurse"))
	limit, limited, err := number(c, "recurselimit")
	if err != nil {
		return opt, err
	}
	if limited && limit == 0 { // the root alone; to a tree, zero is no limit
		opt.Recurse = false
	}
	opt.RecurseLimit = limit
	opt.MaxFiles, _, err = number(c, "max_files")
	return opt, err
}

// number reads a count. Left out, or one of Puppet's words for no limit, it is
// zero and no limit.
func number(c *call, name string) (n int, limited bool, err error) {
	value := c.query.Get(name)
	if slices.Contains([]string{"", "inf", "infinite", "-1"}, value) {
		return 0, false, nil
	}
	parsed, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return 0, false, badRequest("%s is '%.40s'; a whole number is needed", name, printable(value))
	}
	return int(parsed), true, nil
}
