package filemgr

import (
	"context"

	"github.com/tutti-project/tutti/internal/agent/builtin"
)

// fileData is what the data function file gives, in the types that conditions compare.
type fileData struct {
	Present bool   `json:"present"`
	Type    string `json:"type,omitempty"`
	Size    *int64 `json:"size,omitempty"` // bytes
	Mode    string `json:"mode,omitempty"` // permissions, four octal digits
	UID     *int   `json:"uid,omitempty"`  // not on Windows
	GID     *int   `json:"gid,omitempty"`  // not on Windows
	MD5     string `json:"md5,omitempty"`  // of a regular file
	SHA256  string `json:"sha256,omitempty"`
	MTime   *int64 `json:"mtime,omitempty"` // seconds since 1970
	Age     *int64 `json:"age,omitempty"`   // seconds
}

// FileData answers the data function file: what Data says in MCollective's words for fstat, in types that can be compared.
func FileData() builtin.Data {
	return func(ctx context.Context, path string) (any, error) {
		s, err := look(ctx, path)
		if err != nil || s.Present == 0 {
			return fileData{}, err
		}
		d := s.details
		return fileData{
			Present: true, Type: d.Type, Size: &d.Size, Mode: d.Mode[max(0, len(d.Mode)-4):], UID: &d.UID, GID: &d.GID, MD5: d.MD5, SHA256: d.SHA256,
			MTime: &d.ModifiedUnix, Age: &d.ModifiedAge,
		}, nil
	}
}
