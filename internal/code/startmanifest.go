package code

import (
	"context"
	"path"
	"strings"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
)

// defaultManifest is what an environment without a manifest setting has.
const defaultManifest = "manifests"

// StartManifest returns where a version's code begins: its manifest setting, a
// file or directory relative to the environment or absolute. Empty when that is
// not known: the setting names variables, which only the compiler expands, or
// environment.conf is none.
func (l *Library) StartManifest(ctx context.Context, t *Tree) (string, error) {
	conf, err := l.conf(ctx, t)
	if fault.Is(err, fault.Invalid) {
		return "", nil // what cannot be read does not name anything
	}
	if err != nil {
		return "", err
	}
	value := confSetting(conf, "manifest", defaultManifest)
	switch {
	case strings.Contains(value, "$"):
		return "", nil
	case value == "":
		return defaultManifest, nil
	}
	return path.Clean(value), nil
}

// conf is a version's environment.conf; nil when it has none.
func (l *Library) conf(ctx context.Context, t *Tree) ([]byte, error) {
	found := t.resolve(t.root, "environment.conf")
	switch {
	case found == nil:
		return nil, nil
	case found.file.Kind != Regular || found.file.Size > maxConfBytes:
		return nil, fault.New(fault.Invalid, "environment.conf is not a file of at most %d bytes", maxConfBytes)
	}
	return cas.Bytes(ctx, l.blobs, found.file.Digest, maxConfBytes)
}
