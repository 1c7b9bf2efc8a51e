package sql

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Watched implements factqueue.Watch: what the catalogs read from which others of the
// node are judged, the newest one and the newest staged one.
func (s *Reusables) Watched(ctx context.Context, node fleet.Certname) ([]string, error) {
	inputs, err := collect(ctx, s.reads, one[int64],
		"SELECT t.inputs FROM nodes n JOIN standings t ON t.environment = n.environment AND t.certname = n.certname WHERE n.certname = $1 ORDER BY t.staged", node)
	if err != nil {
		return nil, explain(err, "read what the catalog of %s was made of", node)
	}
	var paths []string
	for _, id := range inputs {
		list, err := s.factsRead(ctx, id)
		if err != nil {
			return nil, explain(err, "read which facts compilation %d read", id)
		}
		if len(paths) == 0 {
			paths = list
			continue
		}
		paths = slices.Compact(slices.Sorted(slices.Values(append(slices.Clip(paths), list...))))
	}
	return paths, nil
}

// factsRead lists the facts that a compilation read, as sorted JSON pointers below the
// facts. The caller does not change the list.
func (s *Reusables) factsRead(ctx context.Context, inputs int64) ([]string, error) {
	if list, ok := s.factLists.get(inputs); ok {
		return list, nil
	}
	packed, err := collect(ctx, s.reads, one[[]byte], "SELECT document FROM compilation_inputs WHERE compilation = $1", inputs)
	if err != nil || len(packed) == 0 {
		return nil, err
	}
	text, err := s.packer.unpack(packed[0])
	if err != nil {
		return nil, err
	}
	var stored struct {
		Values []struct{ Pointer string } `json:"values"`
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, errors.Join(errors.New("stored inputs cannot be read"), err)
	}
	var list []string
	for _, value := range stored.Values {
		if path, ok := strings.CutPrefix(value.Pointer, "/facts"); ok && (path == "" || path[0] == '/') {
			list = append(list, path)
		}
	}
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	return s.factLists.put(inputs, list), nil
}

// maxFactLists bounds a listCache.
const maxFactLists = 100_000

// listCache remembers which facts compilations read, which never changes. Nodes of one
// kind read the same ones, so equal lists are kept once.
type listCache struct {
	mu     sync.Mutex
	of     map[int64]string
	shared map[string][]string
}

func (c *listCache) get(id int64) ([]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, ok := c.of[id]
	return c.shared[key], ok
}

func (c *listCache) put(id int64, list []string) []string {
	key := strings.Join(list, "\n")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil || len(c.of) >= maxFactLists {
		c.of, c.shared = map[int64]string{}, map[string][]string{}
	}
	if known, ok := c.shared[key]; ok {
		list = known
	}
	c.of[id], c.shared[key] = key, list
	return list
}
