package puppetapi_test

import (
	"crypto/md5"
	"crypto/sha512"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/puppetapi"
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
	b := newBench(t, func(c *puppetapi.Config) { c.MaxBackupBytes = 1000 })
	sum := digestOf("content")
	for name, test := range map[string]struct {
		key, body string
		headers   []string
		want      want
	}{
		"other content":  {"sha256/" + sum, "forged", nil, want{status: 400, holds: "Bad Request: the content has the sha256 " + digestOf("forged") + " and not " + sum}},
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
	b := newBench(t, func(c *puppetapi.Config) { c.Now = func() time.Time { return now } })
	for _, backup := range []struct{ content, path string }{{"two", "/etc/b"}, {"one", "/etc/a"}, {"three", "/etc/b"}} {
		check(t, b.send("PUT", bucketURL+"sha256/"+digestOf(backup.content)+"/"+backup.path+inEnv, backup.content, octetsType), want{status: 200})
		now = now.Add(time.Hour)
	}
	// Another node that has the same content is told not to send it, and has its own list.
	check(t, b.sendAs(asNode("db-1"), "HEAD", bucketURL+"sha256/"+digestOf("one")+"//srv/one"+inEnv, nil), want{status: 200})
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
