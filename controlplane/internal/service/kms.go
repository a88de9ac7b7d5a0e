package service

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"

	kms "k8s.io/kms/pkg/service"

	"github.com/stormglass/stormglass/controlplane/internal/pki"
)

// kmsTimeout is the time limit for the handshake of a new connection to the socket.
const kmsTimeout = 3 * time.Second

// servePlugin serves the KMS v2 API (k8s.io/kms) on a Unix socket.
func servePlugin(s *server) (func(context.Context) error, error) {
	secret, err := os.ReadFile(s.flags.encryptionKey)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(s.flags.socket); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a killed plugin
		return nil, err
	}
	listener := kms.NewGRPCService(s.flags.socket, kmsTimeout, &plugin{server: s, secret: secret})
	return func(ctx context.Context) error {
		ended := make(chan error, 1)
		go func() { ended <- listener.ListenAndServe() }()
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			listener.Close()
			return nil
		}
	}, nil
}

// plugin encrypts with its newest key and decrypts with any of its keys. Each key is derived from the plugin's secret
// and the key's number, which is also the key's ID. A rotation adds a key.
type plugin struct {
	server *server
	secret []byte
}

// Status returns the ID of the newest key. API servers call Status every minute, or every 10 s while it fails, and
// begin to use a new key when Status returns its ID.
func (p *plugin) Status(ctx context.Context) (status *kms.StatusResponse, err error) {
	err = p.server.do(ctx, "status", func() error {
		id, err := pki.CountKeys(p.server.flags.keyCount)
		status = &kms.StatusResponse{Version: "v2", Healthz: "ok", KeyID: strconv.Itoa(id)}
		return err
	})
	return status, err
}

func (p *plugin) Encrypt(ctx context.Context, uid string, data []byte) (answer *kms.EncryptResponse, err error) {
	err = p.server.do(ctx, "encrypt", func() error {
		id, err := pki.CountKeys(p.server.flags.keyCount)
		if err != nil {
			return err
		}
		aead, err := p.key(strconv.Itoa(id))
		if err != nil {
			return err
		}
		answer = &kms.EncryptResponse{KeyID: strconv.Itoa(id), Ciphertext: aead.Seal(nil, nil, data, nil)}
		return nil
	})
	return answer, err
}

func (p *plugin) Decrypt(ctx context.Context, uid string, ask *kms.DecryptRequest) (plain []byte, err error) {
	err = p.server.do(ctx, "decrypt", func() error {
		aead, err := p.key(ask.KeyID)
		if err != nil {
			return err
		}
		plain, err = aead.Open(nil, nil, ask.Ciphertext, nil)
		return err
	})
	return plain, err
}

func (p *plugin) key(id string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, p.secret, nil, "stormglass kms-plugin key "+id, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
