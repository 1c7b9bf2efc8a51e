package puppet

import (
	"container/list"
	"encoding/json"
	"sync"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fleet"
)

const (
	cachedAnswers     = 256
	cachedAnswerBytes = 64 * mebibyte
)

// answerKey names an answer that depends on nothing else: a tree never changes.
// It names the tree and does not hold it: trees are large, and those of versions
// that were deployed over must go.
type answerKey struct {
	environment fleet.Environment
	version     code.VersionID
	deployed    int64 // nanoseconds since 1970; times in answers depend on it

	path  string
	query string
	gzip  bool
}

// answerCache keeps the newest answers to plugin and directory listings. Every
// agent asks the same few of them in every run, and each is some hundred
// kilobytes to sort, encode and compress.
type answerCache struct {
	mu       sync.Mutex
	byKey    map[answerKey]*list.Element
	order    *list.List // newest first
	bytes    int
	maxCount int
	maxBytes int
}

type cachedAnswer struct {
	key  answerKey
	body []byte
}

func newAnswerCache(count, bytes int) *answerCache {
	return &answerCache{byKey: map[answerKey]*list.Element{}, order: list.New(), maxCount: count, maxBytes: bytes}
}

func (a *answerCache) get(key answerKey) ([]byte, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	element, ok := a.byKey[key]
	if !ok {
		return nil, false
	}
	a.order.MoveToFront(element)
	return element.Value.(*cachedAnswer).body, true
}

// put keeps body, which nobody may change afterwards.
func (a *answerCache) put(key answerKey, body []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.byKey[key]; ok || len(body) > a.maxBytes/4 {
		return
	}
	a.byKey[key] = a.order.PushFront(&cachedAnswer{key, body})
	a.bytes += len(body)
	for a.bytes > a.maxBytes || a.order.Len() > a.maxCount {
		oldest := a.order.Remove(a.order.Back()).(*cachedAnswer)
		delete(a.byKey, oldest.key)
		a.bytes -= len(oldest.body)
	}
}

// cached answers with what make gives for the tree, made and compressed once.
func (fs *files) cached(c *call, f format, tree *code.Tree, value func() (any, error)) error {
	key := answerKey{
		environment: tree.Environment(), version: tree.ID(), deployed: tree.DeployedAt().UnixNano(),
		path: c.key, query: c.r.URL.RawQuery, gzip: c.takesGzip(),
	}
	if body, ok := fs.answers.get(key); ok {
		return c.encoded(f, body, key.gzip)
	}
	v, err := value()
	if err != nil {
		return err
	}
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if key.gzip {
		buf := compressed(body)
		body = append([]byte(nil), buf.Bytes()...)
		recycle(buf)
	}
	fs.answers.put(key, body)
	return c.encoded(f, body, key.gzip)
}

// encoded writes a document that may be compressed already.
func (c *call) encoded(f format, body []byte, gzipped bool) error {
	if f.messagePack {
		return c.packed(f, body, gzipped)
	}
	c.w.Header().Set("Content-Type", f.contentType)
	c.w.Header().Set("Vary", "Accept-Encoding")
	if gzipped {
		c.w.Header().Set("Content-Encoding", "gzip")
	}
	return c.whole(body)
}
