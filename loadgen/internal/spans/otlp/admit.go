package otlp

import (
	"context"
	"crypto/subtle"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// export is an export request that the Receiver has admitted.
type export struct {
	cancel context.CancelFunc
	slot   bool // whether the request occupies one of turns.slots
}

type exportKey struct{}

// admit refuses requests without the token. gRPC calls it with the header of each request, before it reads the message.
// An admitted request fails after longestExport, so that a slow sender cannot keep its slot.
func (r *Receiver) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	token := ""
	if all := info.Header.Get(TokenKey); len(all) > 0 {
		token = all[0]
	}
	if r.options.Token != "" && subtle.ConstantTimeCompare([]byte(token), []byte("Bearer "+r.options.Token)) != 1 {
		r.refused.Add(1)
		return ctx, status.Error(codes.Unauthenticated, "the token is missing or wrong")
	}
	ctx, cancel := context.WithTimeout(ctx, longestExport)
	return context.WithValue(ctx, exportKey{}, &export{cancel: cancel}), nil
}

// turns limits how many requests are read at the same time, and counts failed requests. A gRPC interceptor cannot do
// this, because gRPC calls it after it has read the message, and not at all if the message is too long.
type turns struct {
	receiver *Receiver
	slots    chan struct{}
}

// HandleRPC implements stats.Handler. gRPC calls it with stats.Begin before it reads the message, and always with
// stats.End afterwards.
func (t *turns) HandleRPC(ctx context.Context, s stats.RPCStats) {
	e, ok := ctx.Value(exportKey{}).(*export)
	if !ok {
		return
	}
	switch s := s.(type) {
	case *stats.Begin:
		select {
		case t.slots <- struct{}{}:
			e.slot = true
		case <-ctx.Done(): // gRPC then fails to read the message
		}
	case *stats.End:
		e.cancel()
		if e.slot {
			<-t.slots
		}
		if s.Error != nil {
			t.receiver.refused.Add(1)
		}
	}
}

// TagRPC implements stats.Handler.
func (*turns) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (*turns) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (*turns) HandleConn(context.Context, stats.ConnStats) {}
