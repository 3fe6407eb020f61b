#include "textflag.h"

// player is play (play_linux.go) as code that stands by itself: an interpreter
// that was not linked with Holdfast maps a copy of it, and calls it by C's rules
// with tape, operation and control. It also knows the operations of zygotes
// (tape.go), and comes back, with 0, by opReturn alone.
//
// It uses no memory but the tape and its stack, refers to nothing outside
// itself, and calls nothing.
//
//	R12 tape   R13 index of the operation   R14 control
//	BX the operation   BP its mask of arguments that are slots
#define opClone 1
#define opReap 2
#define opMark 3
#define opStore 4
#define opJump 5
#define opEnd 6
#define opLoad 7
#define opPut 8
#define opBranch 9
#define opTurn 10
#define opReturn 11

// An operation is 12 words from byte 512 of the tape on: kind, number, slot of
// the result plus one, the errno that is no failure, six arguments, where a child
// goes on, and which arguments are slots.
#define TAPE R12
#define AT R13
#define CONTROL R14
#define OP BX
#define MASK BP

#define ARG(i, reg) \
	MOVQ (32+8*i)(OP), reg;  \
	BTQ  $i, MASK;           \
	JCC  2(PC);              \
	MOVQ (TAPE)(reg*8), reg

TEXT player<>(SB), NOSPLIT|NOFRAME, $0
	PUSHQ BX
	PUSHQ BP
	PUSHQ R12
	PUSHQ R13
	PUSHQ R14
	PUSHQ R15
	SUBQ  $40, SP
	MOVQ  DI, TAPE
	MOVQ  SI, AT
	MOVQ  DX, CONTROL

next:
	IMUL3Q $96, AT, OP
	LEAQ   512(TAPE)(OP*1), OP
	MOVQ   88(OP), MASK
	MOVBLZX 0(OP), AX
	CMPL   AX, $opClone
	JLS    call            // or opCall, 0
	CMPL   AX, $opReap
	JEQ    reap
	CMPL   AX, $opMark
	JEQ    mark
	CMPL   AX, $opStore
	JEQ    store
	CMPL   AX, $opJump
	JEQ    jump
	CMPL   AX, $opEnd
	JEQ    end
	CMPL   AX, $opLoad
	JEQ    load
	CMPL   AX, $opPut
	JEQ    put
	CMPL   AX, $opBranch
	JEQ    branch
	CMPL   AX, $opTurn
	JEQ    turn
	CMPL   AX, $opReturn
	JEQ    return
	MOVL   $38, AX         // ENOSYS: no such operation
	JMP    fail

call:
	ARG(0, DI)
	ARG(1, SI)
	ARG(2, DX)
	ARG(3, R10)
	ARG(4, R8)
	ARG(5, R9)
	MOVQ   8(OP), AX
	SYSCALL
	MOVBLZX 0(OP), CX
	CMPQ   AX, $-4095
	JCC    failed          // unsigned: an errno
	CMPL   CX, $opClone
	JNE    keep
	TESTQ  AX, AX
	JNE    keep
	MOVQ   80(OP), AT      // the child of a clone
	JMP    next

failed:
	MOVQ   24(OP), DX
	CMPQ   DX, $-1         // whatever it is, it is kept
	JEQ    keep
	NEGQ   AX
	CMPQ   AX, DX
	JNE    fail
	NEGQ   AX

keep:
	MOVQ   16(OP), DX
	TESTQ  DX, DX
	JEQ    done
	MOVQ   AX, -8(TAPE)(DX*8)

done:
	INCQ   AT
	JMP    next

reap:
	MOVQ   $-1, DI
	MOVQ   40(OP), SI
	MOVL   $0x40000000, DX // __WALL
	MOVQ   48(OP), R10
	MOVL   $61, AX         // wait4
	SYSCALL
	CMPQ   AX, $-4         // EINTR
	JEQ    reap
	CMPQ   AX, $-4095
	JCC    reaping
	ARG(0, DX)
	CMPQ   AX, DX
	JNE    reap
	JMP    done

reaping:
	NEGQ   AX
	JMP    fail

mark:
	MOVL   $1, DI          // CLOCK_MONOTONIC
	LEAQ   0(SP), SI
	MOVL   $228, AX        // clock_gettime
	SYSCALL
	IMUL3Q $1000000000, 0(SP), AX
	ADDQ   8(SP), AX
	JMP    keep

store:
	ARG(0, AX)
	MOVQ   40(OP), DX
	MOVL   AX, (DX)
	JMP    done

put:
	ARG(0, AX)
	MOVQ   40(OP), DX
	MOVQ   AX, (DX)
	JMP    done

load:
	MOVQ   32(OP), DX
	ARG(1, AX)
	MOVLQSX (DX)(AX*4), AX
	JMP    keep

jump:
	ARG(0, AX)
	MOVQ   AX, AT
	JMP    next

branch:
	ARG(0, AX)
	TESTQ  AX, AX
	JGT    done
	MOVQ   40(OP), AT
	JMP    next

turn:
	ARG(0, AX)
	ARG(1, DX)
	ARG(2, CX)
	MOVQ   AX, TAPE
	MOVQ   DX, AT
	MOVQ   CX, CONTROL
	JMP    next

return:
	ADDQ   $40, SP
	POPQ   R15
	POPQ   R14
	POPQ   R13
	POPQ   R12
	POPQ   BP
	POPQ   BX
	XORL   AX, AX
	RET

fail:
	MOVL   $0xfa11ed00, 0(SP) // frameFailed
	MOVL   AT, 4(SP)
	MOVL   AX, 8(SP)
	MOVQ   CONTROL, DI
	LEAQ   0(SP), SI
	MOVL   $12, DX
	MOVL   $1, AX          // write
	SYSCALL
	MOVL   $1, DI
	JMP    leave

end:
	XORL   DI, DI

leave:
	MOVL   $231, AX        // exit_group
	SYSCALL
	JMP    leave

	// The end, by which playerCode finds it.
	QUAD   $0x656e642e706c6179

// func playerAt() uintptr
TEXT ·playerAt(SB), NOSPLIT, $0-8
	LEAQ player<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func playNative(tape unsafe.Pointer, at, control uintptr)
TEXT ·playNative(SB), NOSPLIT, $64-24
	MOVQ tape+0(FP), DI
	MOVQ at+8(FP), SI
	MOVQ control+16(FP), DX
	CALL player<>(SB)
	RET
