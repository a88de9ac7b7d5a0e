package object

// number tells that what is being read is a number, and may end here.
func (d *document) number() bool {
	return d.state == inZero || d.state == inInteger || d.state == inFraction || d.state == inExponent
}

// digit reads on in a number.
func (d *document) digit(c byte) (again bool, err error) {
	digit := '0' <= c && c <= '9'
	switch d.state {
	case inMinus:
		switch {
		case c == '0':
			d.state = inZero
		case digit:
			d.state = inInteger
		default:
			return false, errNotJSON
		}
		return false, nil
	case inPoint, inE, inExponentSign:
		switch {
		case digit && d.state == inPoint:
			d.state = inFraction
		case digit:
			d.state = inExponent
		case (c == '+' || c == '-') && d.state == inE:
			d.state = inExponentSign
		default:
			return false, errNotJSON
		}
		return false, nil
	}
	switch {
	case digit && d.state != inZero:
	case c == '.' && (d.state == inZero || d.state == inInteger):
		d.state = inPoint
	case (c == 'e' || c == 'E') && d.state != inExponent:
		d.state = inE
	default:
		d.ended()
		return true, nil
	}
	return false, nil
}
