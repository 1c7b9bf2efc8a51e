package filemgr

import (
	"context"
	"crypto/md5" //nolint:gosec // a checksum that people compare, no secret is kept by it
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/agent/builtin"
)

var errNoFile = errors.New("it is no regular file")

// open opens a regular file; links are followed. Opening does not wait: a named pipe would keep it.
func open(path string) (*os.File, fs.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

type summed struct {
	File string `json:"file"`
	Type string `json:"type"`
}

func checksum(ctx context.Context, in summed) (any, error) {
	if in.Type == "" {
		in.Type = "sha256"
	}
	info, err := os.Stat(in.File)
	var sums map[string]string
	if err == nil {
		sums, err = sumsOf(ctx, in.File, in.Type)
	}
	if err != nil {
		return nil, builtin.Abort("there is no checksum of %s: %v", in.File, cause(err))
	}
	return struct {
		Checksum string `json:"checksum"`
		Type     string `json:"type"`
		Size     int64  `json:"size"`
	}{sums[in.Type], in.Type, info.Size()}, nil
}

func newHash(kind string) hash.Hash {
	switch kind {
	case "md5":
		return md5.New() //nolint:gosec // see above
	case "sha512":
		return sha512.New()
	}
	return sha256.New()
}

// sumsOf reads a file once, until ctx is done.
func sumsOf(ctx context.Context, path string, kinds ...string) (map[string]string, error) {
	file, _, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	hashes := map[string]hash.Hash{}
	var all []io.Writer
	for _, kind := range kinds {
		hashes[kind] = newHash(kind)
		all = append(all, hashes[kind])
	}
	if _, err := io.Copy(io.MultiWriter(all...), untilDone{ctx, file}); err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for kind, h := range hashes {
		sums[kind] = hex.EncodeToString(h.Sum(nil))
	}
	return sums, nil
}

// untilDone is a reader that ends with ctx.
type untilDone struct {
	ctx context.Context //nolint:containedctx // of the one call that reads
	io.Reader
}

// Read implements io.Reader.
func (r untilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

type part struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Bytes  int    `json:"bytes"`
}

// maxPart bounds what read gives.
const maxPart = 64 << 10

func read(_ context.Context, in part) (any, error) {
	if in.Bytes <= 0 || in.Bytes > maxPart {
		in.Bytes = maxPart
	}
	path, err := openToAll(in.File)
	if err != nil {
		return nil, err
	}
	file, info, err := open(path)
	if err != nil {
		return nil, builtin.Abort("%s cannot be read: %v", in.File, cause(err))
	}
	defer func() { _ = file.Close() }()
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o004 == 0 { // it may be another one by now
		return nil, closed(in.File, path)
	}
	buffer := make([]byte, in.Bytes)
	n, err := file.ReadAt(buffer, in.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, builtin.Abort("%s cannot be read: %v", in.File, cause(err))
	}
	return given(buffer[:n], in.Offset, info.Size()), nil
}

// Part is a piece of a file.
type Part struct {
	Text   *string `json:"text,omitempty"`
	Base64 *string `json:"base64,omitempty"`
	Size   int64   `json:"size"` // of the whole file
	Next   int64   `json:"next"` // where the next piece begins
}

// given is text if it is UTF-8. A character that goes on behind the piece belongs to the next one.
func given(content []byte, offset, size int64) Part {
	whole := content
	for range utf8.UTFMax - 1 {
		if r, n := utf8.DecodeLastRune(whole); r != utf8.RuneError || n != 1 {
			break
		}
		whole = whole[:len(whole)-1]
	}
	if len(whole) < len(content) && (len(whole) == 0 || offset+int64(len(content)) >= size || utf8.FullRune(content[len(whole):])) {
		whole = content // it is no text
	}
	if !utf8.Valid(whole) {
		encoded := base64.StdEncoding.EncodeToString(content)
		return Part{Base64: &encoded, Size: size, Next: offset + int64(len(content))}
	}
	text := string(whole)
	return Part{Text: &text, Size: size, Next: offset + int64(len(whole))}
}

// openToAll is a path without links, if every user of the node may read what is there.
func openToAll(path string) (string, error) {
	if runtime.GOOS == "windows" {
		return "", builtin.Abort("files are not read on Windows: their modes do not say who may")
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", builtin.Abort("%s cannot be read: %v", path, cause(err))
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return "", builtin.Abort("%s cannot be read: %v", path, cause(err))
	}
	if info.Mode().Perm()&0o004 == 0 {
		return "", closed(path, resolved)
	}
	for dir := filepath.Dir(resolved); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return "", builtin.Abort("%s cannot be read: %v", path, cause(err))
		}
		if info.Mode().Perm()&0o001 == 0 {
			return "", closed(path, dir)
		}
		if dir == filepath.Dir(dir) {
			return resolved, nil
		}
	}
}

func closed(path, at string) error {
	return builtin.Abort("%s is not read: %s is closed to other users, and this action gives only what all may read", path, at)
}
