package puppet_test

import (
	"context"
	"crypto/md5"
	"crypto/sha512"
	"encoding/hex"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/cas/filebucket"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/puppet"
)

const (
	bucketURL  = "/puppet/v3/file_bucket_file/"
	octetsType = "Content-Type: application/octet-stream"
	octetsOnly = "Accept: application/octet-stream"
)

func TestBucketRoundTrip(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	content := "binary \x00\xff content\n"
	sum512, sumMD5 := sha512.Sum512([]byte(content)), md5.Sum([]byte(content))
	for _, key := range []string{"sha256/" + digestOf(content), "sha512/" + hex.EncodeToString(sum512[:]), "md5/" + hex.EncodeToString(sumMD5[:])} {
		withPath := bucketURL + key + "//etc/motd" + inEnv
		check(t, b.send("HEAD", withPath, "", octetsOnly), want{status: 404})
		check(t, b.send("GET", bucketURL+key+inEnv, "", octetsOnly), want{
			status: 404, body: `{"message":"Not Found: Could not find file_bucket_file ` + key + `","issue_kind":"RESOURCE_NOT_FOUND"}`,
		})
		w := b.send("PUT", withPath, content, octetsType, octetsOnly)
		check(t, w, want{status: 200, headers: map[string]string{"Content-Type": "application/octet-stream", "Content-Length": "0"}})
		check(t, b.send("HEAD", withPath, "", octetsOnly), want{status: 200})
		check(t, b.send("GET", bucketURL+key+inEnv, "", octetsOnly), want{
			status: 200, body: content, headers: map[string]string{"Content-Type": "application/octet-stream"},
		})
		check(t, b.send("GET", withPath, "", octetsOnly, "Range: bytes=0-5"), want{status: 206, body: "binary"})
	}
	empty := bucketURL + "sha256/" + digestOf("") + "//etc/empty" + inEnv
	check(t, b.send("PUT", empty, "", octetsType), want{status: 200})
	check(t, b.send("GET", empty, ""), want{status: 200})
}

func TestBucketRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *puppet.Config) { c.MaxBackupBytes = 1000 })
	sum := digestOf("content")
	for name, test := range map[string]struct {
		key, body string
		headers   []string
		want      want
	}{
		"other content": {
			"sha256/" + sum, "forged", nil, want{status: 400, holds: "Bad Request: the content has the sha256 " + digestOf("forged") + " and not " + sum},
		},
		"too large":      {"sha256/" + sum, strings.Repeat("x", 1001), nil, want{status: 413, holds: "the backup is larger than the 1000 bytes"}},
		"bomb":           {"sha256/" + sum, gzipped(t, strings.Repeat("x", 1<<20)), []string{"Content-Encoding: gzip"}, want{status: 413}},
		"unknown sum":    {"crc32/1234", "x", nil, want{status: 400, holds: "Unsupported checksum type 'crc32'"}},
		"lite":           {"sha256lite/" + sum, "x", nil, want{status: 400}},
		"sha1":           {"sha1/" + strings.Repeat("a", 40), "x", nil, want{status: 400}},
		"short sum":      {"sha256/abc", "x", nil, want{status: 400, holds: "Invalid checksum 'abc': sha256 has 64 lower-case hexadecimal digits"}},
		"upper case":     {"sha256/" + strings.ToUpper(sum), "x", nil, want{status: 400}},
		"sum with dots":  {"sha256/../" + sum, "x", nil, want{status: 400}},
		"no sum":         {"sha256/", "x", nil, want{status: 400}},
		"path with dots": {"sha256/" + sum + "//tmp/../x", "content", nil, want{status: 400}},
		"long path":      {"sha256/" + sum + "/" + strings.Repeat("x", 5000), "content", nil, want{status: 400, holds: "the backup's path has 5000 bytes"}},
		"json":           {"sha256/" + sum, "content", []string{jsonType}, want{status: 415}},
	} {
		t.Log(name)
		check(t, b.send("PUT", bucketURL+test.key+inEnv, test.body, append([]string{octetsType}, test.headers...)...), test.want)
	}
	if missing := b.missing(t, "forged"); !missing {
		t.Error("refused content was stored")
	}
}

// A content whose blob was lost is asked for again.
func TestBucketHealsLostContent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	target := bucketURL + "sha256/" + digestOf("content") + inEnv
	check(t, b.send("PUT", target, "content", octetsType), want{status: 200})
	b.lose(t)
	check(t, b.send("HEAD", target, ""), want{status: 404})
	check(t, b.send("PUT", target, "content", octetsType), want{status: 200})
	check(t, b.send("HEAD", target, ""), want{status: 200})
}

func TestBucketDiff(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	old, changed, binary := "a\nb\nc\nd\ne\nf\ng\nh\n", "a\nb\nc\nd\nE\nf\ng\nh\ni\n", "\x00\x01"
	for _, content := range []string{old, changed, binary} {
		check(t, b.send("PUT", bucketURL+"sha256/"+digestOf(content)+inEnv, content, octetsType), want{status: 200})
	}
	diff := func(from, to string) string {
		return bucketURL + "sha256/" + digestOf(from) + inEnv + "&diff_with=" + to
	}
	check(t, b.send("GET", diff(old, digestOf(changed)), "", octetsOnly), want{
		status: 200, headers: map[string]string{"Content-Type": "application/octet-stream"},
		body: "--- " + digestOf(old) + "\n+++ " + digestOf(changed) + "\n@@ -2,7 +2,8 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n+i\n",
	})
	w := b.send("GET", diff(old, digestOf(old)), "")
	if check(t, w, want{status: 200}); w.Body.Len() != 0 {
		t.Errorf("equal contents differ by %s", w.Body)
	}
	check(t, b.send("GET", diff(old, digestOf(binary)), ""), want{status: 200, holds: "Binary files "})
	check(t, b.send("GET", diff(old, digestOf("x")), ""), want{status: 404, holds: "Not Found: could not find diff_with " + digestOf("x")})
	check(t, b.send("GET", diff(old, "../x"), ""), want{status: 400, holds: "Invalid checksum '../x'"})
}

func TestBucketList(t *testing.T) {
	t.Parallel()
	now := noon
	b := newBench(t, func(c *puppet.Config) { c.Now = func() time.Time { return now } })
	for _, backup := range []struct{ content, path string }{{"two", "/etc/b"}, {"one", "/etc/a"}, {"three", "/etc/b"}} {
		check(t, b.send("PUT", bucketURL+"sha256/"+digestOf(backup.content)+"/"+backup.path+inEnv, backup.content, octetsType), want{status: 200})
		now = now.Add(time.Hour)
	}
	// Another node that has the same content shows that it has it, and has its own list.
	one := bucketURL + "sha256/" + digestOf("one") + "//srv/one" + inEnv
	check(t, b.sendAs(asNode("db-1"), "HEAD", one, nil), want{status: 404})
	check(t, b.sendAs(asNode("db-1"), "PUT", one, strings.NewReader("one"), octetsType), want{status: 200})
	check(t, b.sendAs(asNode("db-1"), "HEAD", one, nil), want{status: 200})
	list := bucketURL + "sha256/" + inEnv + "&list_all=true"
	lines := []string{
		digestOf("one") + " 2026-11-21 13:00:00 /etc/a\n",
		digestOf("two") + " 2026-11-21 12:00:00 /etc/b\n",
		digestOf("three") + " 2026-11-21 14:00:00 /etc/b\n",
	}
	check(t, b.send("GET", list, "", octetsOnly), want{status: 200, body: strings.Join(lines, "")})
	check(t, b.send("GET", list+"&fromdate=2026-11-21%2012:30:00&todate=2026-11-21%2013:30", ""), want{status: 200, body: lines[0]})
	check(t, b.send("GET", list+"&fromdate=yesterday", ""), want{status: 400, holds: "Error while parsing 'fromdate'"})
	check(t, b.sendAs(asNode("db-1"), "GET", list, nil), want{status: 200, body: digestOf("one") + " 2026-11-21 15:00:00 /srv/one\n"})
	w := b.sendAs(asNode("db-2"), "GET", list, nil)
	if check(t, w, want{status: 200}); w.Body.Len() != 0 {
		t.Errorf("db-2 never backed anything up, its list is %s", w.Body)
	}
}

// What a node did not back up itself is not there for it, in any of the ways to ask.
func TestBucketKeepsNodesApart(t *testing.T) {
	t.Parallel()
	open := false
	grants := []fleet.Grant{{Permission: fleet.NodeAct}}
	b := newBench(t, func(c *puppet.Config) {
		c.Backups = func() puppet.BackupRules { return puppet.BackupRules{Open: open} }
		c.Roles = func(_ context.Context, actor fleet.Actor) (fleet.Actor, error) {
			if actor.Name == "master-1" {
				actor.Grants = grants
			}
			return actor, nil
		}
	})
	secret, mine := digestOf("secret of web-1"), digestOf("mine")
	check(t, b.send("PUT", bucketURL+"sha256/"+secret+"//etc/shadow"+inEnv, "secret of web-1", octetsType), want{status: 200})
	check(t, b.sendAs(asNode("db-1"), "PUT", bucketURL+"sha256/"+mine+inEnv, strings.NewReader("mine"), octetsType), want{status: 200})
	asks := []struct{ method, target string }{
		{"GET", bucketURL + "sha256/" + secret + inEnv},
		{"HEAD", bucketURL + "sha256/" + secret + inEnv},
		{"HEAD", bucketURL + "sha256/" + secret + "//etc/shadow" + inEnv},
		{"GET", bucketURL + "sha256/" + secret + inEnv + "&diff_with=" + secret},
		{"GET", bucketURL + "sha256/" + mine + inEnv + "&diff_with=" + secret},
	}
	all := func(actor fleet.Actor, status int) {
		t.Helper()
		for _, ask := range asks {
			w := b.sendAs(actor, ask.method, ask.target, nil)
			if check(t, w, want{status: status}); status != 200 && strings.Contains(w.Body.String(), "secret of web-1") {
				t.Errorf("%s %s tells the content", ask.method, ask.target)
			}
		}
	}
	person := fleet.Actor{Kind: fleet.UserActor, Name: "ann", Grants: grants}
	all(asNode("db-1"), 404)
	all(person, 200)
	all(asNode("master-1"), 200)
	open = true
	all(asNode("db-1"), 200)
}

// A node that keeps as much as it may is told so, before it sends and while it does.
func TestBucketQuota(t *testing.T) {
	t.Parallel()
	quota := filebucket.Quota{Files: 3, Bytes: 1000}
	b := newBench(t, func(c *puppet.Config) {
		c.Backups = func() puppet.BackupRules { return puppet.BackupRules{Quota: quota} }
	})
	put := func(node, content, path string) *httptest.ResponseRecorder {
		return b.sendAs(asNode(node), "PUT", bucketURL+"sha256/"+digestOf(content)+"/"+path+inEnv, strings.NewReader(content), octetsType)
	}
	large, other := strings.Repeat("x", 900), strings.Repeat("y", 200)
	check(t, put(web, large, "/a"), want{status: 200})
	refusal := `{"message":"Insufficient Storage: ` + web + ` keeps 900 bytes of backed-up files; with 200 more it would have more than ` +
		`the 1000 that a node may keep (setting backup_bytes_per_node); old ones go after backup_retention","issue_kind":"RUNTIME_ERROR"}`
	check(t, put(web, other, "/b"), want{status: 507, body: refusal})
	zipped := strings.Repeat("z", 1<<20)
	w := b.send("PUT", bucketURL+"sha256/"+digestOf(zipped)+inEnv, gzipped(t, zipped), octetsType, "Content-Encoding: gzip")
	check(t, w, want{status: 507, holds: "setting backup_bytes_per_node"})
	if !b.missing(t, other) || !b.missing(t, zipped) {
		t.Error("refused content was stored")
	}
	check(t, put("db-1", other, "/b"), want{status: 200}) // has a quota of its own
	check(t, put(web, large, "/b"), want{status: 200})    // one content, two files
	check(t, put(web, "", "/c"), want{status: 200})
	check(t, put(web, "", "/d"), want{status: 507, holds: "keeps 3 backed-up files, and a node may keep 3 (setting backup_files_per_node)"})
	check(t, b.send("HEAD", bucketURL+"sha256/"+digestOf("")+"//d"+inEnv, ""), want{status: 404}) // then it sends, and sees the words
	check(t, put(web, large, "/a"), want{status: 200})                                            // what it has stays good
	check(t, b.send("HEAD", bucketURL+"sha256/"+digestOf(large)+"//a"+inEnv, ""), want{status: 200})
}

// Contents that come at the same time share what is left of the quota.
func TestBucketQuotaOfManyAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *puppet.Config) {
		c.Backups = func() puppet.BackupRules { return puppet.BackupRules{Quota: filebucket.Quota{Bytes: 1000}} }
	})
	first, second := strings.Repeat("1", 600), strings.Repeat("2", 600)
	slow := &slowEnd{Reader: strings.NewReader(first), reached: make(chan struct{}), goOn: make(chan struct{})}
	done := make(chan *httptest.ResponseRecorder)
	go func() {
		done <- b.sendAs(asNode(web), "PUT", bucketURL+"sha256/"+digestOf(first)+inEnv, slow, octetsType)
	}()
	<-slow.reached
	check(t, b.send("PUT", bucketURL+"sha256/"+digestOf(second)+inEnv, second, octetsType), want{status: 507, holds: "setting backup_bytes_per_node"})
	close(slow.goOn)
	check(t, <-done, want{status: 200})
	check(t, b.send("PUT", bucketURL+"sha256/"+digestOf("small")+inEnv, "small", octetsType), want{status: 200})
}

// slowEnd is a body whose end comes when the test says so.
type slowEnd struct {
	io.Reader
	reached, goOn chan struct{}
}

func (s *slowEnd) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err == io.EOF {
		close(s.reached)
		<-s.goOn
	}
	return n, err
}
