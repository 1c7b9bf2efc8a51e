package front

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestTheLongestPrefixAnswersAndIsCounted(t *testing.T) {
	t.Parallel()
	say := func(word string) Route {
		return Bodiless(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Answer", word+" "+r.URL.Path) }))
	}
	mux := http.NewServeMux()
	mux.Handle("/status/", say("status"))
	routes := Prefixes{"/puppet/": say("none"), "/puppet/v3/file_bucket_file/": say("bucket")}.Before(mux)
	for path, want := range map[string][2]string{
		"/puppet/v3/file_bucket_file/md5/x//etc/motd": {"bucket /puppet/v3/file_bucket_file/md5/x//etc/motd", "/puppet/v3/file_bucket_file/"},
		"/puppet/v3/nothing":                          {"none /puppet/v3/nothing", "/puppet/"},
		"/status/x":                                   {"status /status/x", "/status/"},
		"/else":                                       {"", ""},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
		routes.ServeHTTP(w, r)
		if got := [2]string{w.Header().Get("Answer"), r.Pattern}; got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
