package blobs3

import (
	"os"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/tutti-project/tutti/internal/fault"
)

// keys gives the credentials of the environment or of a file, which is read again when it changes.
type keys struct {
	file string

	mu   sync.Mutex
	read time.Time // when the file was changed that was read last
}

const maxKeysBytes = 64 << 10

// RetrieveWithCredContext implements credentials.Provider.
func (k *keys) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return k.Retrieve()
}

// Retrieve implements credentials.Provider.
func (k *keys) Retrieve() (credentials.Value, error) {
	if k.file == "" {
		v := credentials.Value{
			AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
			SignerType: credentials.SignatureV4,
		}
		if v.AccessKeyID == "" || v.SecretAccessKey == "" {
			return v,
				fault.New(fault.Unavailable,
					"there are no credentials for the S3 store: name a file with blobs_credentials, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
		}
		return v, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Stat(k.file)
	if err != nil {
		return credentials.Value{}, fault.Wrap(fault.Unavailable, err, "the credentials of the S3 store cannot be read (%v)", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return credentials.Value{}, fault.New(fault.Unavailable, "everybody on this machine may read the credentials in %s: chmod o= %[1]s", k.file)
	}
	if info.Size() > maxKeysBytes {
		return credentials.Value{}, fault.New(fault.Unavailable, "the credentials' file %s has %d bytes, at most %d are read", k.file, info.Size(), maxKeysBytes)
	}
	text, err := os.ReadFile(k.file)
	if err != nil {
		return credentials.Value{}, fault.Wrap(fault.Unavailable, err, "the credentials of the S3 store cannot be read (%v)", err)
	}
	k.read = info.ModTime()
	v := parseKeys(string(text))
	if v.AccessKeyID == "" || v.SecretAccessKey == "" {
		return v, fault.New(fault.Unavailable, "%s has no aws_access_key_id and aws_secret_access_key in its part [default]", k.file)
	}
	return v, nil
}

// parseKeys reads the part [default] of a file as Amazon's tools have it; lines before any part count, too.
func parseKeys(text string) credentials.Value {
	v := credentials.Value{SignerType: credentials.SignatureV4}
	part := "default"
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			part = strings.TrimSpace(strings.Trim(line, "[]"))
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if !found || part != "default" {
			continue
		}
		switch value = strings.TrimSpace(value); strings.TrimSpace(key) {
		case "aws_access_key_id":
			v.AccessKeyID = value
		case "aws_secret_access_key":
			v.SecretAccessKey = value
		case "aws_session_token":
			v.SessionToken = value
		}
	}
	return v
}

// IsExpired implements credentials.Provider.
func (k *keys) IsExpired() bool {
	if k.file == "" {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Stat(k.file)
	return err != nil || !info.ModTime().Equal(k.read)
}
