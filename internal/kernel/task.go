package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Task is what a transaction left to be done after its commit. Its row is the mark by which
// it is done again after a crash.
type Task struct {
	// Kind is the kernel's. Name and Data are the feature's, for its React.
	Kind string          `json:"kind"`
	Name string          `json:"name,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
	// Tenant and Crossing say what the task is about.
	Tenant   string `json:"tenant_id,omitempty"`
	Crossing string `json:"crossing,omitempty"`
	// Stop is lifted once the task is done.
	Stop string `json:"stop,omitempty"`
	// Tries counts the failures; After is the time of the next try.
	Tries int       `json:"tries,omitempty"`
	After time.Time `json:"after,omitzero"`
}

// The kinds of tasks: a feature's reaction, or the delivery of an entry or a signal to a
// handler that had failed.
const (
	taskReact  = "react"
	taskEntry  = "entry"
	taskSignal = "signal"
)

type taskKey struct {
	Feature string `table:"feature"`
	ID      string `table:"id"` // in the order in which tasks were left
}

var taskRows = table.New[taskKey, Task]("feature_task", table.Options{})

// How many tasks of a feature are done in a row, among how many they are looked for, how
// long one may take, and how long one that failed waits at most.
const (
	tasksAtOnce = 100
	tasksSeen   = 100_000
	taskTime    = 30 * time.Second
	maxTaskWait = time.Minute
)

func signalTask(s signal.Signal) (Task, error) {
	b, err := json.Marshal(s)
	tenant, _, crossing := s.SignalAbout()
	return Task{Kind: taskSignal, Name: s.SignalName(), Data: b, Tenant: tenant, Crossing: crossing}, err
}

func (s *scope) leaveTask(feature string, t Task) error {
	id, err := s.k.newID()
	if err == nil {
		err = taskRows.Insert(s.Tx, taskKey{feature, id}, t)
	}
	s.tasks = true
	return err
}

// reactSoon does the tasks that a commit left.
func (k *Kernel) reactSoon() {
	if err := k.React(context.Background()); err != nil {
		k.log.Warn("tasks of features are not done yet", "err", err)
	}
}

// React does the tasks of the features that are due, one after another. Sweep does so too, so
// that what failed, and what a crash left, is done. An error is of the tasks that are left.
func (k *Kernel) React(ctx context.Context) error {
	select {
	case k.reacting <- struct{}{}:
		return k.reactOnce(ctx)
	case <-ctx.Done():
		return fmt.Errorf("cannot react: another reaction takes its time: %w", ctx.Err())
	}
}

// reactUnlessBusy is React, unless one is in progress.
func (k *Kernel) reactUnlessBusy(ctx context.Context) error {
	select {
	case k.reacting <- struct{}{}:
		return k.reactOnce(ctx)
	default:
		return nil
	}
}

// reactOnce is React for a caller that has put its mark into reacting.
func (k *Kernel) reactOnce(ctx context.Context) error {
	defer func() { <-k.reacting }()
	var errs []error
	for _, f := range k.features.all {
		due, err := k.dueTasks(ctx, f.spec.Name)
		if err != nil {
			return err
		}
		for _, t := range due {
			if err := k.doTask(ctx, f, t); err != nil {
				errs = append(errs, fmt.Errorf("feature %s: %w", f.spec.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

type dueTask struct {
	key  taskKey
	task Task
}

var errEnough = errors.New("enough")

func (k *Kernel) dueTasks(ctx context.Context, feature string) (due []dueTask, err error) {
	err = k.store.View(ctx, func(tx Tx) error {
		return taskRows.Scan(tx, table.Range{Prefix: []any{feature}, Limit: tasksSeen}, func(key taskKey,
			t Task, _ int64) error {
			if k.now().Before(t.After) {
				return nil // it is not in the way of those after it
			}
			if due = append(due, dueTask{key, t}); len(due) == tasksAtOnce {
				return errEnough
			}
			return nil
		})
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return due, err
}

// doTask does a task and deletes its row; a task that fails waits, each time twice as long.
func (k *Kernel) doTask(ctx context.Context, f *feature, t dueTask) error {
	ctx, cancel := context.WithTimeout(ctx, taskTime)
	defer cancel()
	var err error
	if t.task.Kind == taskReact {
		if err = k.runReaction(ctx, f, t.task); err == nil {
			return walError(k.runInScope(ctx, func(s *scope) error { return s.finishTask(t) }))
		}
	} else if err = k.deliverAgain(ctx, f, t); err == nil {
		return nil
	}
	t.task.Tries++
	t.task.After = k.now().Add(min(maxTaskWait, time.Second<<min(t.task.Tries, 10)))
	fault := k.store.Update(context.WithoutCancel(ctx), func(tx Tx) error {
		_, version, err := taskRows.Get(tx, t.key)
		if err != nil {
			return err
		}
		return taskRows.Replace(tx, t.key, t.task, version)
	})
	return errors.Join(err, fault)
}

func (k *Kernel) runReaction(ctx context.Context, f *feature, t Task) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
	}()
	if f.reacts == nil {
		return errors.New("a task without a reaction")
	}
	return f.reacts.React(ctx, t)
}

// deliver gives a handler what it failed at, in the transaction that ends the task.
func (k *Kernel) deliverAgain(ctx context.Context, f *feature, t dueTask) error {
	return walError(k.runInScope(ctx, func(s *scope) error {
		err := s.deliverTo(f, t.task)
		if err != nil {
			// What failed again is no reason to leave it out.
			return fmt.Errorf("delivered again: %v", err)
		}
		return s.finishTask(t)
	}))
}

func (s *scope) deliverTo(f *feature, t Task) error {
	if t.Kind == taskSignal && f.handles != nil {
		sig, err := signal.Parse(t.Name, t.Data)
		if err == nil {
			_, err = s.callHook(f, func(tx FeatureTx) (map[string]any, error) { return f.handles.OnSignal(tx, sig) })
		}
		return err
	}
	if t.Kind != taskEntry || f.enters == nil {
		return errors.New("a task without a handler")
	}
	leaves, err := s.Crossing(t.Tenant, t.Crossing)
	if err != nil {
		return err
	}
	for _, l := range leaves {
		if l.Kind != ledger.KindEntry {
			continue
		}
		e, err := ledger.ParseEntry(l.Record)
		if err == nil {
			_, err = s.callHook(f, func(tx FeatureTx) (map[string]any, error) {
				return nil, f.enters.OnEntry(tx,
					nil, e)
			})
		}
		return err
	}
	return fmt.Errorf("the entry of crossing %s: %w", t.Crossing, ErrNotFound)
}

func (s *scope) finishTask(t dueTask) error {
	if err := taskRows.Delete(s.Tx, t.key); err != nil || t.task.Stop == "" {
		return err
	}
	others := false
	err := taskRows.Scan(s.Tx, table.Range{Limit: tasksSeen}, func(_ taskKey, o Task,
		_ int64) error {
		others = others || o.Stop == t.task.Stop
		return nil
	})
	if err != nil || others {
		return err
	}
	err = s.liftStop("", t.task.Tenant, t.task.Stop)
	if errors.Is(err, ErrNotFound) {
		err = nil // a person was faster
	}
	return err
}
