package scenario

func (v *validator) tracing(t Tracing) {
	switch b := t.Sample; {
	case b == nil:
	case !b.Fits(Ratio):
		v.fail("tracing.sample", "write it as 5%", "%s is not a percentage", b)
	case b.Value < 0 || b.Value > 1:
		v.fail("tracing.sample", "from 0% to 100%", "%s is out of bounds", b)
	case v.s.ControlPlane.Tracing.Endpoint != "":
		v.fail("controlPlane.tracing", "leave out one of the two", "with tracing.sample, components send their spans to the run")
	}
}
