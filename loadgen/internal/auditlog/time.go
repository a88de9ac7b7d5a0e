package auditlog

import "time"

// micros parses a time and returns microseconds since 1970. It is fast for the format of audit events,
// 2006-01-02T15:04:05.000000Z, and accepts other RFC 3339 times, too.
func micros(text []byte) (int64, bool) {
	const form = "2006-01-02T15:04:05.000000Z"
	if len(text) == len(form) && text[4] == '-' && text[7] == '-' && text[10] == 'T' && text[13] == ':' && text[16] == ':' && text[19] == '.' && text[26] == 'Z' {
		year, ok1 := digits(text[0:4])
		month, ok2 := digits(text[5:7])
		day, ok3 := digits(text[8:10])
		hour, ok4 := digits(text[11:13])
		minute, ok5 := digits(text[14:16])
		second, ok6 := digits(text[17:19])
		part, ok7 := digits(text[20:26])
		if ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7 && 1 <= month && month <= 12 && 1 <= day && day <= 31 && hour < 24 && minute < 60 && second < 60 {
			return (days(year, month, day)*86400+int64(hour*3600+minute*60+second))*1e6 + int64(part), true
		}
		return 0, false
	}
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil || t.IsZero() {
		return 0, false
	}
	return t.UnixMicro(), true
}

func digits(text []byte) (n int, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// days returns the number of days from 1970-01-01 to a date. The algorithm is days_from_civil in Howard Hinnant's
// "chrono-compatible low-level date algorithms".
func days(year, month, day int) int64 {
	if month <= 2 {
		year--
	}
	era := year / 400
	yearOfEra := year - era*400
	dayOfYear := (153*((month+9)%12)+2)/5 + day - 1
	dayOfEra := yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear
	return int64(era)*146097 + int64(dayOfEra) - 719468
}
