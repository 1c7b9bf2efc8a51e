package puppetapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/code"
)

// checksumNames are those that agents may ask metadata with.
var checksumNames = []string{
	"sha256", "sha256lite", "md5", "md5lite", "sha1", "sha1lite", "sha512", "sha384", "sha224", "mtime", "ctime", "none",
}

// fileMetadata describes one file.
func (s *server) fileMetadata(c *call) error {
	f, err := c.accepted(dataFormats)
	if err != nil {
		return err
	}
	opt, err := metadataOptions(c)
	if err != nil {
		return err
	}
	tree, err := s.tree(c)
	if err != nil {
		return err
	}
	mount, path := splitMount(c.key)
	meta, err := tree.Metadata(c.ctx, mount, path, opt)
	if isNotFound(err) {
		return c.notThere()
	}
	if err != nil {
		return err
	}
	return c.value(f, meta)
}

// fileMetadatas describes a file and what is below it.
func (s *server) fileMetadatas(c *call) error {
	f, err := c.accepted(dataFormats)
	if err != nil {
		return err
	}
	opt, err := searchOptions(c)
	if err != nil {
		return err
	}
	tree, err := s.tree(c)
	if err != nil {
		return err
	}
	return s.cached(c, f, tree, func() (any, error) {
		mount, path := splitMount(c.key)
		all, err := tree.Metadatas(c.ctx, mount, path, opt)
		if isNotFound(err) {
			return nil, problemf(http.StatusNotFound, resourceNotFound,
				"Could not find instances in file_metadata with '%s'", printable(c.key))
		}
		return all, err
	})
}

// tree is the current version of the environment that was asked for.
func (s *server) tree(c *call) (Tree, error) {
	tree, err := s.Trees.Current(c.ctx, c.env)
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

func metadataOptions(c *call) (code.MetadataOptions, error) {
	opt := code.MetadataOptions{
		Links:             oneOf(c.query.Get("links"), "manage"),
		ChecksumType:      oneOf(c.query.Get("checksum_type"), "sha256"),
		SourcePermissions: oneOf(c.query.Get("source_permissions"), "ignore"),
	}
	switch {
	case !slices.Contains([]string{"manage", "follow"}, opt.Links):
		return opt, badRequest("links is '%.40s'; manage or follow are known", printable(opt.Links))
	case !slices.Contains(checksumNames, opt.ChecksumType):
		return opt, badRequest("checksum_type '%.40s' is not known; %s are", printable(opt.ChecksumType), strings.Join(checksumNames, ", "))
	case !slices.Contains([]string{"ignore", "use", "use_when_creating"}, opt.SourcePermissions):
		return opt, badRequest("source_permissions is '%.40s'; ignore, use or use_when_creating are known", printable(opt.SourcePermissions))
	}
	return opt, nil
}

// maxIgnore bounds the patterns of a search.
const maxIgnore = 256

func searchOptions(c *call) (opt code.SearchOptions, err error) {
	if opt.MetadataOptions, err = metadataOptions(c); err != nil {
		return opt, err
	}
	opt.Recurse = !slices.Contains([]string{"", "false"}, c.query.Get("recurse"))
	if opt.RecurseLimit, err = number(c, "recurselimit"); err != nil {
		return opt, err
	}
	if opt.MaxFiles, err = number(c, "max_files"); err != nil {
		return opt, err
	}
	if opt.Ignore = c.query["ignore"]; len(opt.Ignore) > maxIgnore {
		return opt, badRequest("%d patterns to ignore, at most %d are allowed", len(opt.Ignore), maxIgnore)
	}
	return opt, nil
}

// number reads a count; left out, or Puppet's words for no limit, it is -1.
func number(c *call, name string) (int, error) {
	value := c.query.Get(name)
	if slices.Contains([]string{"", "inf", "infinite", "-1"}, value) {
		return -1, nil
	}
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return 0, badRequest("%s is '%.40s'; a whole number is needed", name, printable(value))
	}
	return int(n), nil //nolint:gosec // 31 bits fit
}

func oneOf(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
