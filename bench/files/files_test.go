package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/bench/rivals/load"
)

var small = settings{BigBytes: 5000, Files: 3, FileBytes: 100, RandomSeed: 1}

func TestMadeFilesAreWhatVerifyWants(t *testing.T) {
	t.Parallel()
	environment := t.TempDir()
	if err := small.makeFiles(environment); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.StripPrefix(contentPrefix, http.FileServer(http.Dir(filepath.Join(environment, "modules/blobs/files")))))
	t.Cleanup(server.Close)
	conn, err := load.NewConn(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	b := &bench{settings: small}
	r := route{before: contentPrefix, after: "?environment=production"}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := b.verify(r, -1, 0, 2)(ctx, conn); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(environment, "modules/blobs/files/small/00002"), make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.verify(r, 2)(ctx, conn); err == nil || !strings.Contains(err.Error(), "wrong bytes") {
		t.Errorf("err = %v", err)
	}
}

func TestContentFollowsTheSeed(t *testing.T) {
	t.Parallel()
	other := small
	other.RandomSeed = 2
	if !bytes.Equal(small.content(1), small.content(1)) || bytes.Equal(small.content(1), small.content(2)) || bytes.Equal(small.content(1), other.content(1)) {
		t.Error("content does not follow seed and number")
	}
	if sha256.Sum256(small.content(-1)) == sha256.Sum256(make([]byte, 5000)) {
		t.Error("the large file is empty of meaning")
	}
}
