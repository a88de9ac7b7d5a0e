package topology

import (
	"fmt"

	"github.com/stormglass/stormglass/controlplane/control"
)

const tracingReason = "tracing: spans of sampled requests are sent to a receiver, which costs CPU for each sampled request"

// trace sets the environment variables of a component's OpenTelemetry SDK. The SDK sends the component's name and the
// receiver's token with each batch of spans. It sends a batch each second instead of every 5 s, and drops new spans
// while 8,192 spans wait. trace returns false if tracing is off.
func (c *component) trace(t control.SpanExport) bool {
	if t.Endpoint == "" {
		return false
	}
	headers := "stormglass-process=" + c.process.Name
	if t.Token != "" {
		headers += ",authorization=Bearer%20" + t.Token
	}
	c.process.Env = append(c.process.Env, "OTEL_EXPORTER_OTLP_HEADERS="+headers, "OTEL_BSP_SCHEDULE_DELAY=1000", "OTEL_BSP_MAX_QUEUE_SIZE=8192")
	return true
}

// tracingConfig returns the content of the file Layout.Tracing, or nil if tracing is off.
func tracingConfig(cfg control.Config) []byte {
	if cfg.Tracing.Endpoint == "" {
		return nil
	}
	return fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: TracingConfiguration
endpoint: %q
samplingRatePerMillion: %d
`, cfg.Tracing.Endpoint, cfg.Tracing.SamplingRatePerMillion)
}
