package workload

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

// retry repeats ask, which must be idempotent, while the error is transient and the workload's patience lasts.
func (w *Workload) retry(ctx context.Context, ask func() error) error {
	deadline := time.Now().Add(w.options.Patience)
	pause := apiclient.Retry{Backoff: w.backoff()}
	for {
		err := ask()
		if err == nil || !transient(err) || !time.Now().Before(deadline) || ctx.Err() != nil {
			return err
		}
		pause.Pause(ctx)
	}
}

// transient reports whether an error may go away by itself: no connection or a lost one, 429 and 5xx.
func transient(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	return errors.As(err, new(net.Error))
}
