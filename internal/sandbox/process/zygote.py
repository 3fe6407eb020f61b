    # What a zygote does (Holdfast puts this into wait, in park.py, with PLACES): it maps its
    # tape and player's code, and lets that have the process. Only its forks come back.
    # What ctypes brings is not there for a program that does not ask for it.
    held, looked = set(modules), set(sys.path_importer_cache)
    import ctypes
    c = ctypes.CDLL(None, use_errno=True)
    c.mmap.restype, c.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    own, size, tape, tape_size, file, control = PLACES
    if c.mmap(own, size, 3, 0x100001, file, 0) != own:  # shared, at that place
        raise OSError(ctypes.get_errno(), 'map the tape')
    code = c.mmap(None, size, 5, 2, file, size)
    if code is None or code == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), 'map the player')
    os.close(file)
    player = ctypes.PYFUNCTYPE(ctypes.c_long, ctypes.c_void_p, ctypes.c_long, ctypes.c_long)(code)
    before_fork, after_fork = ctypes.pythonapi.PyOS_BeforeFork, ctypes.pythonapi.PyOS_AfterFork_Child
    before_fork.restype = after_fork.restype = None
    for name in set(modules) - held:
        del modules[name]
    for name in set(sys.path_importer_cache) - looked:
        del sys.path_importer_cache[name]
    ready()
    before_fork()
    player(own, 0, control)
    # From here on it is a child, behind its walls.
    after_fork()
    c.munmap(own, size)
    c.munmap(tape, tape_size)
    c.munmap(code, size)
    del ctypes, c, player, before_fork, after_fork
    warm(1)
