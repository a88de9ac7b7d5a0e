package fault

import (
	"context"
	"errors"

	"github.com/stormglass/stormglass/controlplane/control"
)

func startWebhook(context.Context, string, control.Fault) (func(context.Context) error, error) {
	return nil, errors.New("not here yet")
}
