package cli

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/run"
)

// drawEvery is the minimum time between two drawings of the page.
const drawEvery = 250 * time.Millisecond

// page shows a run on a terminal and reacts to keys. It opens when the first snapshot arrives. A nil page shows nothing.
type page struct {
	control *run.Control

	mu       sync.Mutex
	model    pageModel
	terminal *rawTerminal // the terminal that shows the page; nil until the page opens
	over     bool         // whether the page was closed, or the terminal cannot show it
	steps    []string     // steps to print to the terminal when the page is closed
	quitting bool

	writing sync.Mutex // held while a goroutine writes to the terminal
	dirty   chan struct{}
	closing chan struct{}
	tasks   sync.WaitGroup
}

func newPage(control *run.Control, began time.Time, url string) *page {
	return &page{
		control: control, model: pageModel{began: began, url: url, colours: true}, dirty: make(chan struct{}, 1), closing: make(chan struct{}),
	}
}

// show updates the page with a snapshot. It reports whether the terminal shows the page.
func (p *page) show(s run.Snapshot) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	if p.terminal == nil && !p.open() {
		return false
	}
	p.model.take(s, time.Now())
	p.renew()
	return true
}

// open opens the page on the terminal, and reports whether the terminal can show it. If open returns false, later calls
// return false, too. The caller holds mu.
func (p *page) open() bool {
	t, err := openTerminal()
	if err != nil {
		p.over = true // the live line shows the most important values instead
		return false
	}
	p.terminal = t
	p.tasks.Go(p.draw)
	go p.readKeys() // ends when the terminal is closed, or with the program if reads cannot be canceled
	return true
}

// step adds the line of a completed step to the page. It reports whether the terminal shows the page.
func (p *page) step(line string) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.model.steps = append(p.model.steps, line)
	if p.over || p.terminal == nil {
		return false
	}
	p.steps = append(p.steps, line)
	p.renew()
	return true
}

// renew schedules a redraw of the page. The caller holds mu.
func (p *page) renew() {
	select {
	case p.dirty <- struct{}{}:
	default: // a redraw is already scheduled
	}
}

// draw redraws the page after each change, at most once per drawEvery.
func (p *page) draw() {
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-p.dirty:
		case <-p.closing:
			return
		}
		p.mu.Lock()
		columns, rows := p.terminal.size()
		frame := p.model.frame(columns, rows, time.Now())
		p.mu.Unlock()
		if !p.write(frame, columns, rows) {
			return
		}
		wait.Reset(drawEvery)
		select {
		case <-wait.C:
		case <-p.closing:
			return
		}
	}
}

// write draws a frame (the lines of the page). It returns false if the page is closed or the terminal no longer exists.
func (p *page) write(frame []string, columns, rows int) bool {
	p.writing.Lock()
	defer p.writing.Unlock()
	select {
	case <-p.closing:
		return false
	default:
		return p.terminal.draw(frame, columns, rows) == nil
	}
}

func (p *page) readKeys() {
	var parser keyParser
	data := make([]byte, 256)
	for {
		n, err := p.terminal.file.Read(data)
		for _, key := range parser.feed(data[:n]) {
			p.press(key)
		}
		if err != nil {
			return // the terminal was closed or no longer exists
		}
	}
}

// press executes the command of a key.
func (p *page) press(key byte) {
	said := ""
	switch key {
	case 'p':
		err := p.control.Pause()
		if errors.Is(err, run.ErrPaused) {
			err = p.control.Resume()
		}
		said = text(err)
	case 'n':
		p.mu.Lock()
		shown := p.model.snapshot.Phase // one long key press must not end the next phase too
		p.mu.Unlock()
		said = text(p.control.EndPhase(shown))
	case 'q':
		said = p.quit()
	case '?', 'h':
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if key == '?' || key == 'h' {
		p.model.help = !p.model.help
	}
	p.model.said = said
	p.renew()
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// quit does the same as the first Ctrl-C. Only the first call of quit has an effect, because a long key press must not
// skip the orderly end.
func (p *page) quit() string {
	p.mu.Lock()
	again := p.quitting
	p.quitting = true
	p.mu.Unlock()
	if again {
		return "the run is ending; Ctrl-C skips all waiting"
	}
	return text(syscall.Kill(os.Getpid(), syscall.SIGINT))
}

// close closes the page and returns the steps that it has shown.
func (p *page) close() []string {
	if p == nil || !p.end() {
		return nil
	}
	close(p.closing)
	p.leave()
	p.tasks.Wait()
	return p.steps
}

// end ends the updates of the page. `shown` reports whether the terminal shows the page.
func (p *page) end() (shown bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	shown = p.terminal != nil && !p.over
	p.over = true
	return shown
}

// abandonWithin is the time limit of the method `abandon`. The terminal may no longer accept output.
const abandonWithin = time.Second

// abandon closes the page of a program that is about to end. Unlike close, it returns after abandonWithin at the latest.
func (p *page) abandon() {
	if !p.end() {
		return
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		p.leave()
	}()
	select {
	case <-left:
	case <-time.After(abandonWithin):
	}
}

// leave restores the terminal immediately.
func (p *page) leave() {
	p.writing.Lock()
	defer p.writing.Unlock()
	_ = p.terminal.restore() // the terminal may no longer exist
}
