# The system's interpreter imports this as it starts, where the walls stand and
# nothing of a request is there: it makes ready what every program uses, waits,
# and then says that it is not there. The interpreter goes on as it always does.
def wait():
    import sys, os
    before = set(sys.modules)
    import atexit, gc, io, _thread, _weakref
    modules, leave, collect, threads, weak = sys.modules, os._exit, gc.collect, _thread._count, _weakref.ref
    ours, kind = set(), type(sys)

    # Runs behind everything that the program has registered. Where the program
    # ended by itself, without an error, a thread or an exit code, this brings
    # about what the interpreter would, of the program's own modules, and leaves
    # those of the interpreter as they are: nobody is there who could see them go.
    def end():
        main = modules.get('__main__')
        left = getattr(main, '__dict__', {})
        if '__file__' in left or '__cached__' in left or threads() or hasattr(sys, 'last_type') or hasattr(sys, 'last_exc'):
            return
        if sys.stdout is not sys.__stdout__ or sys.stderr is not sys.__stderr__ or sys.stdin is not sys.__stdin__:
            return
        def flush():
            for f in (sys.stdout, sys.stderr):
                if f is not None and not f.closed:
                    f.flush()
        try:
            flush()
        except BaseException:
            return
        if gc.isenabled():
            collect()
        order = [weak(main)]
        for name in list(modules):
            if name not in ours:
                try:
                    order.append(weak(modules[name]))
                except TypeError:
                    pass
                modules[name] = None
        modules['__main__'] = main = left = None
        collect()
        for one in reversed(order):
            module = one()
            if not isinstance(module, kind):
                continue
            names = module.__dict__
            for private in (True, False):
                for n in list(names):
                    if (n[:1] == '_' and n[1:2] != '_') == private and n != '__builtins__':
                        names[n] = None
        try:
            flush()
        except BaseException:
            return
        leave(0)

    program = """
class C:
    def f(self, *a, **k): return [x for x in a]
try: C().f(1, b=2)[7]
except IndexError as e: str(e)
d = {'a': 1}; s = f'{6 * 7} {d!r} {1.5:.2f}'; t = tuple(sorted(d)); u = {*t} | {2}
print(s, t, file=out, flush=True)
"""
    def warm(n):
        for _ in range(n):
            there = {'out': io.TextIOWrapper(io.BytesIO(), encoding='utf-8')}
            exec(compile(program, '/code/main.py', 'exec'), there)

    # What is here is the interpreter's, and no program's garbage.
    def ready():
        ours.update(modules)
        collect()
        gc.freeze()
        # The program's own module is a new one, which is not frozen with the rest.
        main = kind('__main__')
        main.__dict__.clear()
        main.__dict__.update(modules['__main__'].__dict__)
        modules['__main__'] = main

    def environment(text):
        coerced = os.environ.get('LC_CTYPE')
        os.environ.clear()
        first = modules['posix'].environ
        first.clear()
        for line in text.split(b'\0'):
            name, _, value = line.partition(b'=')
            os.environb[name] = first[name] = value
        if coerced and 'LC_CTYPE' not in os.environ:
            os.environ['LC_CTYPE'] = coerced
            first[b'LC_CTYPE'] = coerced.encode()

    warm(3)
    sys.meta_path[-1].find_spec('sitecustomize_')  # which makes a finder of each folder
    atexit.register(end)
    for name in set(modules) - before:
        del modules[name]
    # Here stands zygote.py, in a zygote.
    if not ours:
        ready()

    try:
        request = os.open('/code/request', os.O_RDONLY)
    except FileNotFoundError:
        request = None  # it waits for the program itself
    if request is not None:
        text = b''
        while True:
            b = os.read(request, 65536)
            if not b:
                break
            text += b
        os.close(request)
        if text:
            environment(text)
    for finder in sys.path_importer_cache.values():
        if hasattr(finder, 'invalidate_caches'):
            finder.invalidate_caches()


wait()
raise ImportError(name='sitecustomize')
