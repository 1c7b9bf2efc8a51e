package puppet

import (
	"strings"
	"testing"
)

func FuzzParseRange(f *testing.F) {
	for _, seed := range []string{"0-0", "5-", "-5", "-", "9-1", "99999999999999999999-", "0x1-2", "1-2-3"} {
		f.Add(seed, int64(100))
	}
	f.Add("0-", int64(0))
	f.Fuzz(func(t *testing.T, spec string, size int64) {
		if size < 0 {
			return
		}
		part, ok := parseRange(spec, size)
		if ok && part.length > 0 && (part.start < 0 || part.start+part.length > size) {
			t.Errorf("%q of %d bytes is %+v", spec, size, part)
		}
	})
}

func FuzzParseBackupKey(f *testing.F) {
	for _, seed := range []string{"", "md5/", "sha256/" + strings.Repeat("a", 64) + "//etc/motd", "sha1/x", "md5/../x", "/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		parsed, err := parseBackupKey(key)
		if err != nil || parsed.checkSum() != nil {
			return
		}
		if strings.ContainsAny(parsed.sum, "/.") {
			t.Errorf("%q has the sum %q", key, parsed.sum)
		}
		if again := parsed.algorithm + "/" + parsed.sum; key != again && key != again+"/"+parsed.path {
			t.Errorf("%q was read as %+v", key, parsed)
		}
	})
}

func TestNoControlCharactersInTexts(t *testing.T) {
	t.Parallel()
	if got, want := printable("a\x00b\r\n\x1b[31mc\x7fé"), "a?b???[31mc?é"; got != want {
		t.Errorf("printable gives %q, want %q", got, want)
	}
}
