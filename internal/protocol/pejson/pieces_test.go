package pejson_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/protocol/pejson"
)

// oneLine is a listener with one connection.
type oneLine chan net.Conn

func (l oneLine) Accept() (net.Conn, error) {
	conn, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (oneLine) Close() error   { return nil }
func (oneLine) Addr() net.Addr { return &net.TCPAddr{} }

// asked serves one connection on which a caller asks for much, and tells when the handler ended, and how.
func asked(t *testing.T, caller func(line net.Conn)) (took time.Duration, err error) {
	t.Helper()
	type end struct {
		took time.Duration
		err  error
	}
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan end, 1)
		routes := service().Routes(map[string]pejson.Act{"GET /much": func(w http.ResponseWriter, _ *http.Request) error {
			start := time.Now()
			_, err := io.WriteString(w, `{"text":"`+strings.Repeat("x", 1<<20)+`"}`)
			ended <- end{time.Since(start), err}
			return nil
		}})
		server := &http.Server{Handler: routes, ReadHeaderTimeout: time.Second}
		here, there := net.Pipe()
		listener := make(oneLine, 1)
		listener <- there
		go func() { _ = server.Serve(listener) }()
		if _, err := io.WriteString(here, "GET /much HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Error(err)
		}
		go caller(here)
		is := <-ended
		took, err = is.took, is.err
		close(listener)
		_ = here.Close()
		_ = server.Close()
		synctest.Wait()
	})
	return took, err
}

// Who never reads an answer loses the connection; who reads slowly gets all of it.
func TestAnAnswerThatNobodyReads(t *testing.T) {
	t.Parallel()
	took, err := asked(t, func(net.Conn) {})
	if err == nil || took != time.Minute {
		t.Errorf("not read: %v after %s", err, took)
	}
	took, err = asked(t, func(line net.Conn) {
		var err error
		for err == nil { // much slower than all at once may be
			<-time.After(20 * time.Second)
			_, err = io.CopyN(io.Discard, line, 60<<10)
		}
	})
	if err != nil || took < 5*time.Minute {
		t.Errorf("read slowly: %v after %s", err, took)
	}
}
