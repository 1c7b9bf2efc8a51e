package git

import (
	"context"
	"strings"
	"time"
)

// headTime is how long git may take to look at a work tree.
const headTime = 20 * time.Second

// Head returns the commit that dir is a work tree of, or a tracked directory in
// one. It is empty when dir is neither, when it only lies inside a work tree that
// knows nothing of it (ignored, or all new), or when it holds changes that are
// not committed: then no commit says what is there.
func Head(ctx context.Context, dir string) string {
	ctx, cancel := context.WithTimeout(ctx, headTime)
	defer cancel()
	g := git{dir: dir}
	changes, err := g.run(ctx, "status", "--porcelain", "--", ".")
	if err != nil || strings.TrimSpace(changes) != "" {
		return ""
	}
	if _, err := g.run(ctx, "rev-parse", "--verify", "--quiet", "HEAD:./"); err != nil {
		return "" // the commit has no such directory
	}
	commit, err := g.run(ctx, "rev-parse", "--verify", "--quiet", "HEAD")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(commit)
}
