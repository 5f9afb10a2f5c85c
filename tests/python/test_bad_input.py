"""Bad input raises an exception of the right type that names the op, the argument and the expected value."""

import numpy as np
import pytest

import minitensor as mt

# An expression over `x` (three floats) and `r` (two that require a gradient), the exception, and part of its text.
BAD = [
    ("mt.ops.swish()", TypeError, "op 'swish': missing argument 'x'; call it as swish(x)"),
    ("mt.ops.swish(x,x)", TypeError, "op 'swish' takes 1 argument, got 2; call it as swish(x)"),
    ("mt.ops.clamp(x,foo=1)", TypeError, "op 'clamp' has no argument 'foo'; call it as clamp(x,"),
    ("mt.ops.adam_step(x,x,x,x)", TypeError, "op 'adam_step': missing argument 'lr'; call it as adam_step(p,"),
    ("mt.ops.swihs", AttributeError, "module 'minitensor.ops' has no attribute 'swihs'"),
    ("mt.execute_custom_op_py('swihs',[x])", ValueError, "there is no op 'swihs'; did you mean 'swish'?"),
    ("mt.ops.add(x,mt.ones(4))", ValueError, "op 'add': 'y' of shape (4,) does not broadcast with the shape (3,)"),
    (
        "mt.ops.matmul(mt.ones((2,3)),mt.ones((4,5)))",
        ValueError,
        "op 'matmul' takes (x: [.., m, k],",
    ),
    (
        "mt.ops.exp_(mt.arange(3))",
        TypeError,
        "op 'exp_' changes 'x' in place, but its dtype",
    ),
    ("mt.ops.atan2(x*1j,x)", TypeError, "op 'atan2': 'x' takes floating dtypes, got complex64;"),
    ("mt.ops.bitwise_and(x,x)", TypeError, "op 'bitwise_and': 'x' takes integer dtypes, got float32;"),
    ("mt.Tensor([1.0],device='cuda')", RuntimeError, "device 'cuda' is not available: "),
    ("mt.ones(3,device='cuda:0')", RuntimeError, "device 'cuda:0' is not available: "),
    ("mt.ones(3,device='tpu')", ValueError, "unknown device 'tpu'; the devices are 'cpu'"),
    ("x.to([1])", TypeError, "to() takes a dtype or a device, such as x.to('float64') or x.to('cpu'), got [1];"),
    ("x.to('flot32')", ValueError, "to() takes a dtype or a device: unknown dtype 'flot32'; the dtypes are"),
    ("x.to('cpu:3')", ValueError, "unknown device 'cpu:3'; the devices are 'cpu'"),
    ("x.to('cuda')", RuntimeError, "device 'cuda' is not available: "),
    ("x[5]", IndexError, "index 5 is out of range for axis 0 of size 3"),
    ("x[1,2]", IndexError, "too many indices: got 2 for a tensor of 1 dimension and shape (3,)"),
    ("x['a']", TypeError, "an index must be an integer, a slice, None, '...', or an integer"),
    ("x[1.5]", TypeError, "an index must be an integer, a slice, None, '...', or an integer"),
    ("x[mt.Tensor([7])]", IndexError, "op 'index': index 7 is out of range for"),
    ("x[[0,9]]", IndexError, "op 'index': index 9 is out of range for"),
    ("mt.ops.gather(x,mt.Tensor([9]))", IndexError, "op 'gather': index 9 is out of range for size 3"),
    ("mt.ops.take(x,mt.Tensor([-9]))", IndexError, "op 'take': op 'embedding': index -9 is out of range for size 3"),
    (
        "mt.ops.embedding(mt.ones((3,2)),mt.Tensor([3]))",
        IndexError,
        "op 'embedding': index 3 is out of range for size 3",
    ),
    ("mt.ops.one_hot(mt.Tensor([5]),3)", IndexError, "op 'one_hot': class 5 is out of range for num_classes = 3"),
    (
        "mt.ops.cross_entropy(mt.ones((2,3)),mt.Tensor([0,3]))",
        IndexError,
        "op 'cross_entropy': 'target' contains position 3, which is out of range for a row of size 3",
    ),
    ("mt.ones((2**40,2**40))", MemoryError, "a tensor of shape (1099511627776, 1099511627776) would have"),
    ("mt.ones((2**62,))", MemoryError, "a tensor of shape (4611686018427387904,) would have more"),
    ("mt.ones(10**13)", MemoryError, "a tensor of shape (10000000000000,) and dtype float32: cannot"),
    ("mt.zeros(2**45)", MemoryError, "a tensor of shape (35184372088832,) and dtype float32: cannot"),
    ("mt.ones(-1)", ValueError, "the sizes of a shape must not be negative, got [-1]"),
    ("mt.ones((3,-2))", ValueError, "the sizes of a shape must not be negative, got [3, -2]"),
    ("mt.ones(1.5)", TypeError, "a shape must be an integer or a tuple of integers, got 1.5"),
    ("mt.ones('a')", TypeError, "a shape must be an integer or a tuple of integers, got 'a'"),
    ("mt.Tensor([[1,2],[3]])", ValueError, "ragged nested lists: data[1] has length 1, but the preceding element"),
    ("mt.Tensor('abc')", TypeError, "expected a number, nested lists or tuples of numbers,"),
    ("mt.Tensor(None)", TypeError, "expected a number, nested lists or tuples of numbers,"),
    ("mt.Tensor({1:2})", TypeError, "expected a number, nested lists or tuples of numbers,"),
    ("mt.Tensor(object())", TypeError, "expected a number, nested lists or tuples of numbers,"),
    ("mt.Tensor([None])", TypeError, "expected a number, nested lists or tuples of numbers,"),
    ("mt.Tensor([2**70])", ValueError, "1180591620717411303424 does not fit into uint64; use another"),
    ("mt.Tensor([1,'a'])", TypeError, "expected a number, nested lists or tuples of numbers,"),
    ("mt.Tensor(np.array([object()]))", TypeError, "the NumPy dtype object is not supported; convert the array"),
    ("mt.Tensor(np.array(['a']))", TypeError, "the NumPy dtype str32 is not supported; convert the array"),
    ("mt.asarray(ro).add_(1.0)", ValueError, "op 'add_' changes 'x' in place, but its memory is read-only;"),
    ("x.backward()", RuntimeError, "backward() needs a tensor that requires a gradient, but this"),
    ("x.sum().backward()", RuntimeError, "backward() needs a tensor that requires a gradient, but this"),
    ("(r*r).backward()", RuntimeError, "backward() without a gradient needs a tensor with one element,"),
    ("mt.grad(r.sum(),[x])", RuntimeError, "grad: inputs[0] does not require a gradient; create it with"),
    ("mt.grad(x.sum(),[r])", RuntimeError, "backward() needs a tensor that requires a gradient, but this"),
    (
        "mt.grad((r*r).sum(),[mt.ones(2,requires_grad=True)])",
        RuntimeError,
        "grad: the outputs do not depend on inputs[0]; pass",
    ),
    ("r.backward(mt.ones(3))", ValueError, "backward: the gradient has shape (3,), but the tensor has shape (2,)"),
    ("mt.ops.argmax(r).backward()", RuntimeError, "backward() needs a tensor that requires a gradient, but this"),
    ("mt.ops.sum(x,axis=5)", IndexError, "op 'sum': axis 5 is out of range for a tensor of 1"),
    ("mt.ops.sum(x,axis=(0,0))", ValueError, "op 'sum': axis [0, 0] contains an axis twice"),
    ("mt.ops.sum(x,axis=(0,-1))", ValueError, "op 'sum': axis [0, -1] contains an axis twice"),
    ("mt.ops.max(mt.ones((0,3)))", ValueError, "op 'max' is undefined for zero elements: the tensor is empty; pass"),
    ("mt.ops.max(mt.ones((2,0,9)),1)", ValueError, "op 'max' is undefined for zero elements: axis 1 has size 0; pass"),
    ("mt.ops.min(mt.ones((2,0,3)),-2)", ValueError, "op 'min' is undefined for zero elements: axis -2 has size 0;"),
    ("mt.ops.max(mt.ones((2,0,3)),(1,2))", ValueError, "zero elements: the axes [1, 2] have no elements; pass a"),
    (
        "mt.ops.argmax(mt.ones((0,)))",
        ValueError,
        "op 'argmax' is undefined for zero elements: the tensor is",
    ),
    ("mt.ops.softmax(mt.Tensor(1.0))", IndexError, "op 'softmax': axis -1 is out of range: the tensor has no"),
    ("mt.ops.topk(x,7)", ValueError, "op 'topk' needs k <= n, got n = 3, k = 7"),
    ("mt.ops.topk(x,-1)", ValueError, "op 'topk': attribute 'k' takes int of at least 0, got -1"),
    ("mt.ops.reshape(x,[-1,-1])", ValueError, "op 'reshape': cannot reshape 3 elements of shape (3,) to [-1,"),
    ("mt.ops.reshape(x,[2])", ValueError, "op 'reshape': cannot reshape 3 elements of shape (3,) to [2]:"),
    ("mt.ops.reshape(x,[-2])", ValueError, "op 'reshape': cannot reshape 3 elements of shape (3,) to [-2]:"),
    ("mt.ops.expand(x,[2,4])", ValueError, "op 'expand': cannot expand shape (3,) to [2, 4]: sizes are"),
    (
        "mt.ops.permute_dims(mt.ones((2,3)),[0,0])",
        ValueError,
        "op 'permute_dims': axes [0, 0] are not a permutation of the axes of",
    ),
    ("mt.ops.concat([])", ValueError, "op 'concat': takes at least one tensor"),
    (
        "mt.ops.concat([x,mt.ones((2,2))])",
        ValueError,
        "op 'concat': tensors[1] of shape (2, 2) does not match (3,) along",
    ),
    ("mt.ops.concat([x,None])", TypeError, "op 'concat': input 'tensors[1]' must be a tensor, got NoneType;"),
    ("mt.ops.stack([x,mt.ones(4)])", ValueError, "op 'stack': op 'concat': tensors[1] of shape (1, 4) does not match"),
    (
        "mt.ops.squeeze(mt.ones((2,3)),0)",
        ValueError,
        "op 'squeeze': cannot squeeze axis 0 of shape (2, 3): expected size 1, got 2",
    ),
    ("mt.ops.pad(x,[1])", ValueError, "op 'pad': 'padding' must be two sizes of at least 0"),
    ("mt.ops.pad(x,[-5,0])", ValueError, "op 'pad': 'padding' must be two sizes of at least 0"),
    ("mt.ops.dropout(x,p=1.5)", ValueError, "op 'dropout' needs p <= 1.0, got p = 1.5"),
    ("mt.ops.dropout(x,p=float('nan'))", ValueError, "op 'dropout' needs p >= 0.0, got p = float('NaN')"),
    ("mt.ops.clamp(x,lo=float('nan'))", ValueError, "op 'clamp' needs lo <= hi, got lo = float('NaN'), hi ="),
    (
        "mt.ops.leaky_relu(x,negative_slope=10**400)",
        TypeError,
        "op 'leaky_relu': attribute 'negative_slope' takes float, got",
    ),
    ("mt.ops.roll(x,10**30)", ValueError, "1000000000000000000000000000000 does not fit into int64"),
    (
        "mt.ops.one_hot(mt.Tensor([1]),2**62)",
        MemoryError,
        "op 'one_hot': a tensor of shape (1, 4611686018427387904) would",
    ),
    ("mt.ops.unsqueeze(x,9)", IndexError, "op 'unsqueeze': axis 9 is out of range for a tensor of 2"),
    ("mt.ops.slice(x,0,None,None,0)", ValueError, "op 'slice': step must not be 0"),
    ("mt.ops.unslice(x,[-1],0)", ValueError, "op 'unslice': the sizes of a shape must not be negative, got [-1]"),
    (
        "mt.ops.indexing.added_rows(mt.ones((1,2)),mt.Tensor([0]),[-2,2])",
        ValueError,
        "op 'indexing::added_rows': the sizes of a shape must not be negative, got [-2, 2]",
    ),
    ("x[::0]", ValueError, "the step of a slice must not be 0"),
    ("x + 'a'", TypeError, "unsupported operand type(s) for +: 'minitensor.Tensor' and 'str'"),
    ("x + None", TypeError, "unsupported operand type(s) for +: 'minitensor.Tensor' and"),
    ("x @ x[:2]", ValueError, "op 'matmul' takes (x: [.., m, k],"),
    ("x < 'a'", TypeError, "'<' not supported between instances of 'minitensor.Tensor' and"),
    ("bool(x)", ValueError, "bool() needs a tensor with one element, got shape (3,); use any()"),
    ("int(x)", ValueError, "int() needs a tensor with one element, got shape (3,)"),
    ("float(x)", ValueError, "float() needs a tensor with one element, got shape (3,)"),
    ("len(mt.Tensor(1.0))", TypeError, "a 0-d tensor has no len(); use numel()"),
    ("iter(mt.Tensor(1.0))", TypeError, "a 0-d tensor cannot be iterated over; use item()"),
    ("x.item()", ValueError, "item() needs a tensor with one element, got shape (3,); use"),
    ("x.astype('nope')", ValueError, "unknown dtype 'nope'; the dtypes are bool, int8, int16, int32,"),
    ("mt.ones(3,dtype='float31')", ValueError, "unknown dtype 'float31'; the dtypes are bool, int8, int16,"),
    (
        "mt.Tensor([1.0]).add_(mt.ones(3))",
        ValueError,
        "op 'add_' changes 'x' in place, but its shape (1,) differs from",
    ),
    (
        "mt.ops.expand(mt.ones((1,3)),[4,3]).add_(1.0)",
        ValueError,
        "op 'add_' changes 'x' in place, but several of its elements",
    ),
    ("mt.arange(3).add_(1.5)", TypeError, "op 'add_' changes 'x' in place, but its dtype"),
    ("mt.arange(3,requires_grad=True)", RuntimeError, "only floating and complex tensors can require a gradient, got"),
    (
        "mt.Tensor([1,2],requires_grad=True)",
        RuntimeError,
        "only floating and complex tensors can require a gradient, got",
    ),
    ("mt.optim.SGD([],lr=.1)", ValueError, "an optimizer needs at least one parameter, got none"),
    ("mt.optim.SGD([x],lr=.1)", ValueError, "params[0] must be a leaf that requires a gradient"),
    ("mt.optim.Adam([r],lr=-1)", ValueError, "lr must be at least 0, got -1"),
    ("mt.set_num_threads(0)", ValueError, "set_num_threads takes a number of at least 1"),
    ("mt.set_num_threads(-3)", ValueError, "set_num_threads takes a number of at least 1"),
    ("mt.manual_seed(2**80)", ValueError, "manual_seed takes a 64-bit integer, got"),
    ("mt.linspace(0,1,-1)", ValueError, "linspace: num must be at least 0, got -1"),
    ("mt.arange(0,1,0)", ValueError, "arange: step must not be 0"),
    ("mt.arange(0,1e30)", MemoryError, "a tensor of shape (18446744073709551615,) would have more"),
    ("mt.unregister_custom_op_py('nope')", ValueError, "there is no op 'nope'"),
    (
        "mt.testing.gradcheck(lambda x: x, [x])",
        ValueError,
        "gradcheck needs a float64 or complex128 input, because finite differences of float32",
    ),
    (
        "mt.ops.astype(mt.ops.complex(x,x),'float32')",
        TypeError,
        "op 'astype' would lose the imaginary parts of complex64 in",
    ),
    (
        "mt.ops.divide_(mt.arange(3),2)",
        TypeError,
        "op 'divide_' changes 'x' in place, but its dtype",
    ),
    (
        "mt.Tensor.__new__(mt.Tensor).shape",
        RuntimeError,
        "this Tensor is uninitialized, because Tensor.__new__ was called",
    ),
    (
        "mt.ops.swish(mt.Tensor.__new__(mt.Tensor))",
        RuntimeError,
        "this Tensor is uninitialized, because Tensor.__new__ was called",
    ),
    (
        "mt.ops.layer_norm(mt.ones((2,3)),mt.ones(4),mt.ones(3))",
        ValueError,
        "op 'layer_norm' takes (x: [.., n], weight: [n], bias: [n]) ->",
    ),
    (
        "mt.ops.row.cross_entropy(mt.ones((2,3)),mt.asarray([0,3]))",
        IndexError,
        "op 'row::cross_entropy': 'target' contains position 3, which is out of range for a row of size 3;",
    ),
    (
        "mt.ops.cross_entropy(mt.ones((2,3)),mt.asarray([0,-1]))",
        IndexError,
        "op 'cross_entropy': 'target' contains position -1",
    ),
    (
        "mt.ops.cosine_similarity(mt.ones(3),mt.ones(4))",
        ValueError,
        "op 'cosine_similarity' takes (x: [.., n], y: [.., n])",
    ),
    (
        "mt.ops.group_norm(mt.ones((2,3,4)),groups=2)",
        ValueError,
        "op 'group_norm': groups = 2 must divide the number of channels, 3",
    ),
    (
        "mt.ops.instance_norm(mt.ones((2,3)))",
        ValueError,
        "op 'instance_norm' takes x: [batch, channels, ..] with elements",
    ),
    ("mt.ops.batch_norm(mt.ones(3))", ValueError, "op 'batch_norm' takes x: [batch, channels, ..], got shape (3,)"),
    (
        "mt.ops.batch_norm(mt.ones((2,3)),mt.ones(3))",
        TypeError,
        "op 'batch_norm': takes both 'mean' and 'var', or neither",
    ),
    (
        "mt.ops.batch_norm(mt.ones((2,3)),weight=mt.ones(2))",
        ValueError,
        "op 'batch_norm': 'weight' takes one number for each of the 3 channels, got shape (2,)",
    ),
    ("mt.ops.where(x,x,x)", TypeError, "op 'where': 'condition' takes bool, got float32; compare it first"),
    ("mt.eye(-1)", ValueError, "eye: n_rows must be at least 0, got -1"),
    ("x.reshape(3,object())", TypeError, "op 'reshape' takes 2 arguments, got 3; call it as reshape(x,"),
    (
        "mt.ops.sum(x,dtype=5)",
        TypeError,
        "such as mt.float32, its name, or a dtype of NumPy or PyTorch, got 5;",
    ),
    ("mt.linspace(0,1,10**13)", MemoryError, "cannot allocate 80000000000000 bytes for a tensor"),
    ("mt.rand(10**14)", MemoryError, "cannot allocate 400000000000000 bytes for a tensor"),
    ("mt.randint(0,10,(10**14,))", MemoryError, "cannot allocate 800000000000000 bytes for a tensor"),
    ("mt.full((10**14,),1.0)", MemoryError, "a tensor of shape (100000000000000,) and dtype float32: cannot"),
    (
        "mt.ops.contiguous(mt.ops.expand(mt.ones(1),[2**45]))",
        MemoryError,
        "op 'contiguous': a tensor of shape (35184372088832,) and dtype",
    ),
    ("mt.ops.expand(mt.ones(1),[2**45]) + 1", MemoryError, "op 'add': a tensor of shape (35184372088832,) and dtype"),
    (
        "mt.ops.sort(mt.ops.expand(mt.ones(1),[2**45]))",
        MemoryError,
        "op 'sort': a tensor of shape (35184372088832,) and dtype",
    ),
    (
        "mt.CustomOpBuilder('a b',1).forward(abs).register()",
        ValueError,
        "'a b' is not a valid name of an op; use ASCII letters, digits and '_',",
    ),
    (
        "mt.CustomOpBuilder('def',1).forward(abs).build()",
        ValueError,
        "'def' is not a valid name of an op: 'def' is a Python keyword; choose",
    ),
    ("mt.CustomOpBuilder('a',10**9)", ValueError, "op 'a': num_inputs must be between 0 and 64, got 1000000000"),
    (
        "mt.ops.conv2d(mt.ones((3,4)),mt.ones((1,1,2,2)))",
        ValueError,
        "op 'conv2d': 'x' must be [.., channels, height, width], got shape (3, 4); add",
    ),
    (
        "mt.ops.conv2d(mt.ones((1,3,4,4)),mt.ones((1,3,2)))",
        ValueError,
        "'weight' must have 4 dimensions, [out_channels, in_channels / groups,",
    ),
    (
        "mt.ops.conv2d(mt.ones((1,3,4,4)),mt.ones((2,2,2,2)))",
        ValueError,
        "with groups = 1 expects 2 * 1 input channels, but 'x' of shape (1, 3, 4, 4) has 3;",
    ),
    (
        "mt.ops.conv2d(mt.ones((1,4,4,4)),mt.ones((3,2,2,2)),groups=2)",
        ValueError,
        "groups = 2 must divide the numbers of channels, got 4 input and 3 output",
    ),
    (
        "mt.ops.conv2d(mt.ones((1,4,4,4)),mt.ones((3,2,2,2)),groups=0)",
        ValueError,
        "op 'conv2d' needs groups > 0, got groups = 0",
    ),
    (
        "mt.ops.conv2d(mt.ones((1,3,4,4)),mt.ones((2,3,7,2)),padding=1)",
        ValueError,
        "a kernel of 7 with dilation 1 spans 7, but 'x' has only 6 along axis -2",
    ),
    (
        "mt.ops.conv2d(mt.ones((1,3,4,4)),mt.ones((2,3,0,2)))",
        ValueError,
        "a kernel must have at least 1 tap along every axis",
    ),
    (
        "mt.ops.conv1d(mt.ones((1,3,4)),mt.ones((2,3,2)),stride=0)",
        ValueError,
        "op 'conv1d': 'stride' must be at least 1, got [0]",
    ),
    (
        "mt.ops.conv1d(mt.ones((1,3,4)),mt.ones((2,3,2)),padding=-1)",
        ValueError,
        "op 'conv1d': 'padding' must be at least 0, got [-1]",
    ),
    (
        "mt.ops.conv1d(mt.ones((1,3,4)),mt.ones((2,3,2)),dilation=0)",
        ValueError,
        "op 'conv1d': 'dilation' must be at least 1, got [0]",
    ),
    (
        "mt.ops.conv1d(mt.ones((1,3,4)),mt.ones((2,3,2)),stride=[1,2])",
        ValueError,
        "op 'conv1d': 'stride' takes one number, got [1, 2]",
    ),
    (
        "mt.ops.conv3d(mt.ones((1,1,1,1)),mt.ones((1,1,1,1,1)),stride=[1,2])",
        ValueError,
        "'stride' takes one number, or 3 (depth, height, width), got [1, 2]",
    ),
    (
        "mt.ops.conv1d(mt.ones((1,1,1)),mt.ones((1,1,1)),padding=2**40)",
        ValueError,
        "'padding' must be at most 2147483647, got [1099511627776]",
    ),
    (
        "mt.ops.conv2d(mt.ones((1,1,1,1)),mt.ones((1,1,1,1)),padding=2**31-1)",
        MemoryError,
        "[1, 4294967295, 4294967295] windows are more than memory can address",
    ),
    (
        "mt.ops.conv2d(mt.ones((1,3,4,4)),mt.ones((2,3,2,2)),mt.ones(3))",
        ValueError,
        "'bias' of shape (3,) does not match: expected size 2 for dimension o, got 3",
    ),
    ("mt.ops.window.max(mt.ones((1,4)),1,4,[1])", ValueError, "op 'window::max': 'windows' takes 6 numbers for each"),
    (
        "mt.ops.window.max(mt.ones((1,4)),1,4,[1,1,1,1,1,0]*2+[4,4,1,0,1,0])",
        ValueError,
        "stride and dilation of at least 1",
    ),
    (
        "mt.ops.window.max(mt.ones((1,4)),1,4,[1,1,1,1,1,0]*2+[-4,4,1,1,1,0])",
        ValueError,
        "windows and taps of at least 0",
    ),
    (
        "mt.ops.window.max(mt.ones((1,4)),1,4,[1,1,1,1,1,0]*2+[5,4,1,1,1,0])",
        ValueError,
        "'windows' must describe 4 elements, 1 tap and 4 windows, like the other arguments; got [1, 1,",
    ),
    (
        "mt.ops.window.max(mt.ones((1,4)),1,4,[2**62,1,1,1,1,0]*2+[2**62,4,1,1,1,0])",
        ValueError,
        "'windows' must describe 4 elements",
    ),
    ("mt.ops.embedding(mt.ones(3),mt.Tensor([0]))", ValueError, "op 'embedding' takes (weight: [v, e], index: [..])"),
    (
        "mt.ops.conv_transpose1d(mt.ones((1,3,4)),mt.ones((2,3,2)))",
        ValueError,
        "'weight' of shape (2, 3, 2) expects 2 input channels, but 'x' of shape (1, 3, 4) has 3;",
    ),
    (
        "mt.ops.conv_transpose1d(mt.ones((3,4)),mt.ones((3,2,2)),output_padding=1)",
        ValueError,
        "'output_padding' must be less than the stride or the dilation, got [1]",
    ),
    (
        "mt.ops.conv_transpose1d(mt.ones((3,2)),mt.ones((3,2,2)),padding=3)",
        ValueError,
        "the output would have no elements along axis -1: size 2, kernel 2,",
    ),
    (
        "mt.ops.max_pool2d(mt.ones((4,4)),2,padding=2)",
        ValueError,
        "'padding' must be at most half of the kernel, so that every window contains",
    ),
    (
        "mt.ops.max_pool2d(mt.ones((0,4)),1)",
        ValueError,
        "'x' of shape (0, 4) has no elements along axis -2; pooling needs at least one",
    ),
    (
        "mt.ops.avg_pool2d(mt.ones((4,4)),5)",
        ValueError,
        "a kernel of 5 with dilation 1 spans 5, but 'x' has only 4 along axis -2",
    ),
    (
        "mt.ops.fold(mt.ones((8,5)),[3,4],2)",
        ValueError,
        "'x' must be [.., channels * 4, 6], got shape (8, 5): 4 taps of each channel,",
    ),
    ("mt.CustomOpBuilder('a',1).build()", ValueError, "op 'a' has no forward function; call .forward(…)"),
]


@pytest.fixture
def names():
    read_only = np.arange(3.0)
    read_only.flags.writeable = False
    x = mt.Tensor([-1.0, 0.5, 2.0])
    return {"mt": mt, "np": np, "ro": read_only, "x": x, "r": mt.Tensor([1.0, 2.0], requires_grad=True)}


@pytest.mark.parametrize(("call", "error", "words"), BAD, ids=[row[0] for row in BAD])
def test_bad_input_raises_and_changes_nothing(call, error, words, names):
    with pytest.raises(error) as caught:
        eval(call, names)
    assert words in str(caught.value)
    assert type(caught.value) is error
    assert "panicked" not in str(caught.value)
    assert names["x"].tolist() == [-1.0, 0.5, 2.0]
    assert names["r"].tolist() == [1.0, 2.0]
    assert names["r"].grad is None


def test_lists_that_contain_themselves_or_never_end():
    endless = [1.0]
    endless.append(endless)
    with pytest.raises(ValueError, match="ragged"):
        mt.Tensor(endless)
    deep = 1.0
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested more than 64 levels deep"):
        mt.Tensor(deep)


@pytest.mark.parametrize(
    ("backward", "error", "words"),
    [
        (lambda ctx, grad: 1 / 0, ZeroDivisionError, "division by zero"),
        (lambda ctx, grad: None, RuntimeError, "returned no gradient for input 'x'"),
        (lambda ctx, grad: "grad", TypeError, "the backward function must return Tensors, got str"),
        (lambda ctx, grad: (grad, grad), ValueError, "one gradient for each of 1 inputs, got 2"),
        (lambda ctx, grad: mt.ones(5), ValueError, r"shape \(2,\) for the input 'x', got shape \(5,\)"),
    ],
)
def test_a_wrong_backward_raises_and_leaves_no_gradient(backward, error, words, registered):
    op = mt.CustomOpBuilder("test::wrong", 1).forward(lambda x: x * 2).backward(backward).register()
    r = mt.Tensor([1.0, 2.0], requires_grad=True)
    y = op(r).sum()
    for _ in range(2):
        with pytest.raises(error, match=words):
            y.backward(retain_graph=True)
        assert r.grad is None
