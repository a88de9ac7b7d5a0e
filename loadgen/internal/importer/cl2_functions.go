package importer

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"
)

// symbol is a value that is known only when the load creates an object, such as the object's index. Rendering writes
// the symbol as `expr`, a template expression that the load evaluates for each object. value is the symbol's value for
// the index that is being rendered.
type symbol struct {
	expr  string
	value any
	drawn bool // whether the load draws the value at random; value is then not set
}

// Format writes the symbol's template expression. The formatting verb has no effect.
func (s symbol) Format(f fmt.State, _ rune) { fmt.Fprint(f, "{{"+s.expr+"}}") }

// concrete returns v for use in a condition. If v is a symbol, it returns the symbol's value. It fails for a symbol
// whose value the load draws at random.
func concrete(v any) (any, error) {
	s, ok := v.(symbol)
	switch {
	case !ok:
		return v, nil
	case s.drawn:
		return nil, fmt.Errorf("a condition uses the result of %s, which the load draws at random", strings.Fields(s.expr)[0])
	}
	return s.value, nil
}

func operand(v any) string {
	switch v := v.(type) {
	case symbol:
		return "(" + v.expr + ")"
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(v)
}

func toFloat(v any) (float64, error) {
	switch n := v.(type) {
	case nil:
		return 0, fmt.Errorf("a value of the template is missing (add --set NAME=VALUE, or --testoverrides FILE)")
	case symbol:
		if n.drawn {
			return 0, nil // a placeholder: only the expression is used
		}
		return toFloat(n.value)
	case int, int64, float64, string:
		if f, err := strconv.ParseFloat(fmt.Sprint(n), 64); err == nil {
			return f, nil
		}
	}
	return 0, fmt.Errorf("%v is not a number", v)
}

// arithmetic returns a template function that applies fold to its arguments from left to right. If whole is set, the
// result is truncated to an integer. If an argument is a symbol, the result is a symbol whose expression calls the
// sprig function `name`. The function fails if a result is not finite.
func arithmetic(name string, whole bool, fold func(a, b float64) float64) func(...any) (any, error) {
	return func(args ...any) (any, error) {
		if len(args) == 0 {
			return nil, fmt.Errorf("function %s needs at least one argument", name)
		}
		symbolic, drawn := false, false
		var words []string
		result := 0.0
		for i, arg := range args {
			s, is := arg.(symbol)
			symbolic, drawn = symbolic || is, drawn || is && s.drawn
			words = append(words, operand(arg))
			f, err := toFloat(arg)
			if err != nil {
				return nil, err
			}
			if i == 0 {
				result = f
			} else if result = fold(result, f); !drawn && (math.IsNaN(result) || math.IsInf(result, 0)) {
				return nil, fmt.Errorf("the result of %s is not a number: division by zero", name)
			}
		}
		var value any = result
		if whole {
			value = int(result)
		}
		if symbolic {
			return symbol{expr: name + " " + strings.Join(words, " "), value: value, drawn: drawn}, nil
		}
		return value, nil
	}
}

// cl2Functions returns the functions of ClusterLoader2's templates (pkg/config/template_functions.go). It also replaces
// the comparison and logical functions of text/template with versions that accept arguments of type symbol.
func cl2Functions(files fs.FS) template.FuncMap {
	include := func(file string) (string, error) {
		data, err := fs.ReadFile(files, path.Clean(strings.TrimPrefix(file, "/")))
		return string(data), err
	}
	all := template.FuncMap{
		"Mod": arithmetic("mod", true, func(a, b float64) float64 { return math.Mod(math.Trunc(a), math.Trunc(b)) }),
		"Ceil": func(v any) (any, error) {
			f, err := toFloat(v)
			if s, ok := v.(symbol); ok && err == nil {
				return symbol{"ceil " + operand(s), math.Ceil(f), s.drawn}, nil
			}
			return math.Ceil(f), err
		},
		"DefaultParam": func(v, otherwise any) any {
			if v == nil {
				return otherwise
			}
			return v
		},
		"IfThenElse": func(condition, then, otherwise any) (any, error) {
			c, err := concrete(condition)
			switch is, ok := c.(bool); {
			case err != nil:
				return nil, err
			case !ok:
				return nil, fmt.Errorf("%v is neither true nor false", c)
			case is:
				return then, nil
			}
			return otherwise, nil
		},
		"IncludeFile": include, "IncludeEmbedFile": include,
		"Lowercase": func(text string) (string, error) {
			if strings.Contains(text, "{{") {
				return "", fmt.Errorf("the function Lowercase needs a name that is known only when the object is created")
			}
			return strings.ToLower(text), nil
		},
		"StringSplit": func(text string) []string { return strings.Split(text, ",") },
		"Concat":      func(parts ...any) string { return fmt.Sprintf(strings.Repeat("%v", len(parts)), parts...) },
		"YamlQuote": func(text any, tabs int) (string, error) {
			if tabs < 0 || tabs > 100 {
				return "", fmt.Errorf("YamlQuote: %d tabs: must be from 0 to 100", tabs)
			}
			data, err := yaml.Marshal(fmt.Sprint(text))
			return strings.ReplaceAll(string(data), "\n", "\n"+strings.Repeat("  ", tabs)), err
		},
		"concrete": concrete,
	}
	for name, of := range map[string]struct {
		sprig string
		fold  func(a, b float64) float64
	}{
		"Add": {"add", func(a, b float64) float64 { return a + b }}, "Subtract": {"sub", func(a, b float64) float64 { return a - b }},
		"Multiply": {"mul", func(a, b float64) float64 { return a * b }}, "Divide": {"div", func(a, b float64) float64 { return a / b }},
		"Max": {"max", math.Max}, "Min": {"min", math.Min},
	} {
		all[name+"Int"], all[name+"Float"] = arithmetic(of.sprig, true, of.fold), arithmetic(of.sprig+"f", false, of.fold)
	}
	loop := func(v any) ([]int, error) {
		c, err := concrete(v)
		if err != nil {
			return nil, err
		}
		n, err := toFloat(c)
		if err != nil || n < 0 || n > 1e6 {
			return nil, fmt.Errorf("cannot make a list with %v elements (from 0 to 1000000)", v)
		}
		list := make([]int, int(n))
		for i := range list {
			list[i] = i
		}
		return list, nil
	}
	zeros := func(v any) ([]int, error) {
		list, err := loop(v)
		clear(list)
		return list, err
	}
	all["Loop"], all["Seq"], all["SliceOfZeros"] = loop, zeros, zeros
	random(all)
	decisions(all)
	return all
}

// random adds ClusterLoader2's functions for random values to the map `all`. They return symbols instead of values,
// because the load draws a value for each object.
func random(all template.FuncMap) {
	between := func(from, to any) (any, error) {
		a, err := toFloat(from)
		if err != nil {
			return nil, err
		}
		b, err := toFloat(to)
		if err != nil || int(a) >= int(b) {
			return int(a), err
		}
		return symbol{expr: fmt.Sprintf("randInt %d %d", int(a), int(b)+1), drawn: true}, nil
	}
	letters := func(n any) (any, error) {
		count, err := toFloat(n)
		if err != nil || int(count) == 0 {
			return "", err
		}
		return symbol{expr: fmt.Sprintf("randAlphaNum %d", int(count)), drawn: true}, nil
	}
	all["RandIntRange"] = between
	all["RandInt"] = func(to any) (any, error) { return between(0, to) }
	all["RandData"] = letters
	all["RandDataWithSeed"] = func(n, _ any) (any, error) { return letters(n) }
}

// decisions replaces the comparison and logical functions of text/template with versions that accept arguments of type
// symbol.
func decisions(all template.FuncMap) {
	// holds lists the results of cmp.Compare for which the comparison is true.
	for name, holds := range map[string][]int{"eq": {0}, "ne": {-1, 1}, "lt": {-1}, "le": {-1, 0}, "gt": {1}, "ge": {0, 1}} {
		all[name] = func(a any, others ...any) (bool, error) {
			x, err := concrete(a)
			if err != nil {
				return false, err
			}
			for _, other := range others {
				y, err := concrete(other)
				if err != nil {
					return false, err
				}
				order := strings.Compare(fmt.Sprint(x), fmt.Sprint(y))
				f, notX := toFloat(x)
				g, notY := toFloat(y)
				if notX == nil && notY == nil {
					order = cmp.Compare(f, g)
				}
				if slices.Contains(holds, order) {
					return true, nil
				}
			}
			return false, nil
		}
	}
	truth := func(v any) (bool, error) {
		c, err := concrete(v)
		is, _ := template.IsTrue(c)
		return is, err
	}
	all["not"] = func(v any) (bool, error) {
		is, err := truth(v)
		return !is, err
	}
	first := func(want bool) func(...any) (any, error) {
		return func(args ...any) (any, error) {
			var last any
			for _, arg := range args {
				last = arg
				if is, err := truth(arg); err != nil || is == want {
					return arg, err
				}
			}
			return last, nil
		}
	}
	all["and"], all["or"] = first(false), first(true)
}
