package puppet_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/codetest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/puppet"
)

// sources is the code of the environment production.
var sources = map[string]string{
	"manifests/site.pp":                     "node default { }\n",
	"modules/ntp/files/ntp.conf":            "server 0.pool.example.org\n",
	"modules/ntp/files/conf.d/a.conf":       "a\n",
	"modules/ntp/files/conf.d/b c.conf":     "b\n",
	"modules/ntp/files/big":                 strings.Repeat("0123456789abcdef", 40_000),
	"modules/ntp/files/empty":               "",
	"modules/ntp/lib/facter/ntp.rb":         "Facter.add(:ntp) {}\n",
	"modules/ntp/facts.d/site.txt":          "site=a\n",
	"modules/ntp/templates/secret.epp":      "secret\n",
	"modules/web/lib/puppet/type/vhost.rb":  "Puppet::Type.newtype(:vhost)\n",
	"modules/web/tasks/restart.sh":          "#!/bin/sh\n",
	"modules/web/locales/de/web.po":         "msgid\n",
	".base_modules/0/stdlib/files/base.txt": "base\n",
}

// library is the library that newTrees made, and its rows.
type library struct {
	*code.Library
	store *codetest.Store
}

func newTrees(tb testing.TB, blobs *castest.Store) library {
	tb.Helper()
	store := codetest.New()
	lib := library{code.NewLibrary(store, blobs), store}
	lib.deploy(tb, blobs, "production", sources)
	return lib
}

// deploy makes files the current version of an environment.
func (l library) deploy(tb testing.TB, blobs *castest.Store, env fleet.Environment, files map[string]string) code.VersionID {
	tb.Helper()
	manifest := manifestOf(tb, blobs, files)
	version, err := l.Deploy(tb.Context(), code.Deployment{Environment: env, Manifest: manifest, At: noon})
	if err != nil {
		tb.Fatal(err)
	}
	return version.ID
}

func manifestOf(tb testing.TB, blobs *castest.Store, files map[string]string) code.Manifest {
	tb.Helper()
	manifest := code.Manifest{ModulePath: []string{"modules", ".base_modules/0"}}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		digest, size, err := blobs.Put(tb.Context(), strings.NewReader(files[path]))
		if err != nil {
			tb.Fatal(err)
		}
		manifest.Files = append(manifest.Files, code.File{Path: path, Digest: digest, Size: size})
	}
	return manifest
}

func digestOf(text string) string { return string(fleet.DigestOf([]byte(text))) }

func TestFileMetadata(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const path = "/puppet/v3/file_metadata/modules/ntp/ntp.conf?links=manage&checksum_type=sha256&source_permissions=ignore&environment=production"
	wire := `{"path":"/etc/puppetlabs/code/environments/production/modules/ntp/files/ntp.conf","relative_path":null,"links":"manage",` +
		`"owner":0,"group":0,"mode":420,"checksum":{"type":"sha256","value":"{sha256}` + digestOf(sources["modules/ntp/files/ntp.conf"]) + `"},` +
		`"type":"file","destination":null}`
	check(t, b.send("GET", path, "", "Accept: application/json, text/pson"), want{
		status: 200, body: wire, headers: map[string]string{"Content-Type": "application/json;charset=utf-8", "X-Puppet-Version": "7.23.0"},
	})
	check(t, b.send("GET", path, "", "Accept: text/pson"), want{status: 200, body: wire, headers: map[string]string{"Content-Type": "text/pson"}})
	check(t, b.send("GET", strings.Replace(path, "modules/ntp", "modules//ntp", 1), ""), want{status: 200, body: wire})
	check(t, b.send("GET", strings.Replace(path, "=sha256", "=crc32", 1), ""), want{status: 400, holds: "checksum type"})
	check(t, b.send("GET", strings.Replace(path, "=manage", "=x", 1), ""), want{status: 400, holds: "links is"})
	check(t, b.send("GET", "/puppet/v3/file_metadata/modules/ntp/nope?environment=production", ""), want{
		status: 404, body: `{"message":"Not Found: Could not find file_metadata modules/ntp/nope","issue_kind":"RESOURCE_NOT_FOUND"}`,
	})
}

// found is what the tests look at of a search's answer.
type found struct {
	Path     string `json:"path"`
	Relative string `json:"relative_path"`
	Type     string `json:"type"`
}

func (b *bench) search(t *testing.T, target string, headers ...string) []string {
	t.Helper()
	w := b.send("GET", target, "", headers...)
	check(t, w, want{status: 200})
	var all []found
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil {
		t.Fatalf("%v in %.300s", err, w.Body)
	}
	var lines []string
	for _, one := range all {
		lines = append(lines, one.Relative+" "+one.Type)
	}
	slices.Sort(lines)
	return lines
}

func TestFileMetadatas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tests := []struct {
		path string
		want []string
	}{
		{"plugins?recurse=false", []string{". directory"}},
		{"plugins?recurse=true&recurselimit=1&max_files=-1&ignore=.svn&ignore=CVS", []string{". directory", "facter directory", "puppet directory"}},
		{"plugins?recurse=true&recurselimit=0", []string{". directory"}},
		{"pluginfacts?recurse=true", []string{". directory", "site.txt file"}},
		{"locales?recurse=true&recurselimit=infinite", []string{". directory", "de directory", "de/web.po file"}},
		{"modules/ntp/conf.d?recurse=true&ignore=a.*", []string{". directory", "b c.conf file"}},
		{"modules/ntp/conf.d/?recurse=true", []string{". directory", "a.conf file", "b c.conf file"}},
		{"modules/ntp/ntp.conf?recurse=true", []string{". file"}},
	}
	for _, test := range tests {
		for range 2 { // fresh, and from the cache
			if diff := cmp.Diff(test.want, b.search(t, "/puppet/v3/file_metadatas/"+test.path+"&environment=production")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.path, diff)
			}
		}
	}
	for target, want := range map[string]want{
		"modules/ntp/nope?recurse=true&environment=production": {
			status: 404, body: `{"message":"Not Found: Could not find instances in file_metadata with 'modules/ntp/nope'","issue_kind":"RESOURCE_NOT_FOUND"}`,
		},
		"nomount/x?environment=production":                            {status: 404},
		"plugins?recurse=true&recurselimit=-5&environment=production": {status: 400, holds: "recurselimit is '-5'"},
		"plugins?recurse=true&max_files=lots&environment=production":  {status: 400, holds: "max_files is 'lots'"},
		"modules/ntp?recurse=true&max_files=2&environment=production": {status: 400},
		"plugins?recurse=false&environment=nope": {
			status: 404, body: `{"message":"Not Found: Could not find environment 'nope'","issue_kind":"RUNTIME_ERROR"}`,
		},
		"plugins?environment=production" + strings.Repeat("&ignore=x", 200): {status: 400, holds: "ignore patterns"},
	} {
		check(t, b.send("GET", "/puppet/v3/file_metadatas/"+target, ""), want)
	}
}

func TestSearchesAreCachedByVersion(t *testing.T) {
	t.Parallel()
	var lib library
	b := newBench(t, func(c *puppet.Config) { lib = c.Trees.(library) })
	const target = "/puppet/v3/file_metadatas/plugins?recurse=true&environment=production"
	before := b.search(t, target)
	plain := b.send("GET", target, "")
	zipped := b.send("GET", target, "", "Accept-Encoding: gzip")
	check(t, zipped, want{status: 200, headers: map[string]string{"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}})
	if got := gunzipped(t, zipped.Body); got != plain.Body.String() {
		t.Errorf("compressed %s, plain %s", got, plain.Body)
	}
	files := maps.Clone(sources)
	files["modules/web/lib/new.rb"] = "new\n"
	lib.deploy(t, b.blobs, "production", files)
	if after := b.search(t, target); !slices.Equal(after, slices.Sorted(slices.Values(append(before, "new.rb file")))) {
		t.Errorf("after a deploy the answer is %q", after)
	}
}

func TestFileContent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const base, env = "/puppet/v3/file_content/", "?environment=production"
	for path, source := range map[string]string{
		"modules/ntp/ntp.conf":          "modules/ntp/files/ntp.conf",
		"modules/ntp/conf.d/b%20c.conf": "modules/ntp/files/conf.d/b c.conf",
		"modules/ntp/big":               "modules/ntp/files/big",
		"modules/ntp/empty":             "modules/ntp/files/empty",
		"plugins/facter/ntp.rb":         "modules/ntp/lib/facter/ntp.rb",
		"pluginfacts/site.txt":          "modules/ntp/facts.d/site.txt",
		"locales/de/web.po":             "modules/web/locales/de/web.po",
		"tasks/web/restart.sh":          "modules/web/tasks/restart.sh",
		"modules/stdlib/base.txt":       ".base_modules/0/stdlib/files/base.txt",
	} {
		content := sources[source]
		headers := map[string]string{"Content-Type": "application/octet-stream", "Etag": `"` + digestOf(content) + `"`, "Content-Encoding": ""}
		w := b.send("GET", base+path+env, "", "Accept: application/octet-stream", "Accept-Encoding: gzip")
		check(t, w, want{status: 200, headers: headers})
		if w.Body.String() != content {
			t.Errorf("%s: %d bytes, want %d", path, w.Body.Len(), len(content))
		}
	}
	for target, want := range map[string]want{
		"modules/ntp/nope" + env: {
			status: 404, body: `{"message":"Not Found: Could not find file_content modules/ntp/nope","issue_kind":"RESOURCE_NOT_FOUND"}`,
		},
		"modules/nope/x" + env:                  {status: 404},
		"modules/ntp/conf.d" + env:              {status: 400, holds: "is a directory"},
		"modules/ntp/ntp.conf?environment=nope": {status: 404, body: `{"message":"Not Found: Could not find environment 'nope'","issue_kind":"RUNTIME_ERROR"}`},
		"modules/ntp/ntp.conf": {
			status: 400, body: `{"message":"Bad Request: An environment parameter must be specified","issue_kind":"RUNTIME_ERROR"}`,
		},
		"modules/ntp/ntp.conf?environment=a-b": {
			status: 400, body: `{"message":"Bad Request: The environment must be purely alphanumeric, not 'a-b'","issue_kind":"RUNTIME_ERROR"}`,
		},
		"modules/ntp/ntp.conf?environment=../etc": {status: 400},
		env: {status: 400, holds: "No request key specified in /puppet/v3/file_content/"},
		"modules/ntp/../../../manifests/site.pp" + env:            {status: 400, holds: "holds '..'"},
		"modules/ntp/%2e%2e/%2E%2e/manifests/site.pp" + env:       {status: 400, holds: "holds '..'"},
		"modules/ntp/..%2f..%2fmanifests/site.pp" + env:           {status: 400, holds: "holds '..'"},
		"modules/ntp/ntp.conf%00.txt" + env:                       {status: 400, holds: "NUL"},
		"/etc/passwd" + env:                                       {status: 404},
		"modules//etc/passwd" + env:                               {status: 404},
		"modules/ntp/" + strings.Repeat("a/", 5000) + env:         {status: 414},
		"modules/ntp/%ff%fe" + env:                                {status: 404},
		"modules/ntp/x" + env + "&" + strings.Repeat("q", 70_000): {status: 414, holds: "URI Too Long: the query has"},
		"modules/ntp/x" + env + "&a=%zz":                          {status: 400, holds: "the query is not well formed"},
		"modules/ntp/x" + env + "&a;b":                            {status: 400, holds: "the query is not well formed"},
	} {
		check(t, b.send("GET", base+target, ""), want)
	}
	check(t, b.send("GET", base+"modules/ntp/ntp.conf"+env, "", "Accept: application/json"), want{status: 406})
}

func TestHead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.send("HEAD", "/puppet/v3/file_content/modules/ntp/big?environment=production", "")
	check(t, w, want{status: 200, headers: map[string]string{"Content-Length": "640000"}})
	if w.Body.Len() != 0 {
		t.Errorf("a HEAD came with %d bytes", w.Body.Len())
	}
	check(t, b.send("HEAD", "/puppet/v3/file_metadata/modules/ntp/big?environment=production", ""), want{status: 200})
	check(t, b.send("HEAD", "/puppet/v3/file_content/modules/ntp/nope?environment=production", ""), want{status: 404})
}

func TestConditionalAndRange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const target = "/puppet/v3/file_content/modules/ntp/big?environment=production"
	content := sources["modules/ntp/files/big"]
	tag := `"` + digestOf(content) + `"`
	for _, header := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
		w := b.send("GET", target, "", "If-None-Match: "+header)
		check(t, w, want{status: 304, headers: map[string]string{"Etag": tag}})
	}
	check(t, b.send("GET", target, "", `If-None-Match: "x"`), want{status: 200, body: content})
	for spec, part := range map[string]string{
		"bytes=0-0":            content[:1],
		"bytes=16-31":          content[16:32],
		"bytes=300000-":        content[300000:],
		"bytes=-16":            content[len(content)-16:],
		"bytes=-9999999":       content,
		"bytes=639999-9999999": content[639999:],
	} {
		check(t, b.send("GET", target, "", "Range: "+spec), want{status: 206, body: part})
	}
	check(t, b.send("GET", target, "", "Range: bytes=16-31"), want{headers: map[string]string{"Content-Range": "bytes 16-31/640000", "Content-Length": "16"}})
	for _, spec := range []string{"lines=1-2", "bytes=1-2,4-5", "bytes=2-1", "bytes=x-1", "bytes=5", "bytes=-", "bytes=--5"} {
		check(t, b.send("GET", target, "", "Range: "+spec), want{status: 200, body: content})
	}
	for _, spec := range []string{"bytes=640000-", "bytes=999999-1000000", "bytes=-0"} {
		check(t, b.send("GET", target, "", "Range: "+spec), want{status: 416, headers: map[string]string{"Content-Range": "bytes */640000"}})
	}
	check(t, b.send("GET", target, "", "Range: bytes=0-0", "If-Range: "+tag), want{status: 206})
	check(t, b.send("GET", target, "", "Range: bytes=0-0", `If-Range: "other"`), want{status: 200})
}

func TestStaticContent(t *testing.T) {
	t.Parallel()
	var lib library
	b := newBench(t, func(c *puppet.Config) { lib = c.Trees.(library) })
	tree, err := lib.Current(t.Context(), "production")
	if err != nil {
		t.Fatal(err)
	}
	old := string(tree.ID())
	files := maps.Clone(sources)
	files["modules/ntp/files/ntp.conf"] = "server changed\n"
	lib.deploy(t, b.blobs, "production", files)
	target := func(path, id string) string {
		return "/puppet/v3/static_file_content/" + path + "?environment=production&code_id=" + id
	}
	check(t, b.send("GET", target("modules/ntp/files/ntp.conf", old), "", "Accept: application/octet-stream"), want{
		status: 200, body: sources["modules/ntp/files/ntp.conf"], headers: map[string]string{"Content-Type": "application/octet-stream"},
	})
	check(t, b.send("GET", target(".base_modules/0/stdlib/files/base.txt", old), ""), want{status: 200, body: "base\n"})
	const denied = "Request Denied: A /static_file_content request must be a file within the files directory of a module."
	for path, want := range map[string]want{
		target("manifests/site.pp", old):                         {status: 403, holds: denied},
		target("modules/ntp/templates/secret.epp", old):          {status: 403, holds: denied},
		target("modules/ntp/files/../templates/secret.epp", old): {status: 400},
		target("modules/ntp/files/nope", old):                    {status: 404},
		target("modules/ntp/files/ntp.conf", digestOf("x")):      {status: 404, holds: "has no version"},
		target("modules/ntp/files/ntp.conf", "HEAD"):             {status: 400, holds: "code_id"},
		target("modules/ntp/files/ntp.conf", ""): {
			status: 400, holds: "requires an environment, a code-id, and a file-path",
		},
		"/puppet/v3/static_file_content/modules/ntp/files/ntp.conf?code_id=" + old:           {status: 400, holds: "requires an environment"},
		strings.Replace(target("modules/ntp/files/ntp.conf", old), "production", "other", 1): {status: 404},
	} {
		check(t, b.send("GET", path, ""), want)
	}
}

// A node may store any content in the file bucket, also something that looks
// like a manifest and names another node's secret.
func TestForgedVersionGivesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	secret, _, err := b.blobs.Put(t.Context(), strings.NewReader("secret of db-1"))
	if err != nil {
		t.Fatal(err)
	}
	forged, err := code.Manifest{ModulePath: []string{"modules"}, Files: []code.File{
		{Path: "modules/x/files/y", Digest: secret, Size: 14},
	}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	id := digestOf(string(forged))
	check(t, b.send("PUT", "/puppet/v3/file_bucket_file/sha256/"+id+"?environment=production", string(forged), "Content-Type: application/octet-stream"),
		want{status: 200})
	check(t, b.send("GET", "/puppet/v3/static_file_content/modules/x/files/y?environment=production&code_id="+id, ""), want{status: http.StatusNotFound})
}
