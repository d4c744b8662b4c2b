# SPDX-License-Identifier: Apache-2.0
"""Inertia of a body in log-Cholesky parameters: every parameter vector is a physically consistent inertia.

theta = (alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3) spans the pseudo-inertia (C. Rucker and P. M. Wensing,
"Smooth Parameterization of Rigid-Body Inertia", IEEE RA-L 7(2), 2022; in the order of Pinocchio's
LogCholeskyParameters)

    P = [[Sigma, h], [h', m]] = U U',   U = e^alpha [[V, t], [0, 1]],
    V = [[e^d1, s12, s13], [0, e^d2, s23], [0, 0, e^d3]]

with mass m, first moment h = m com and second moment Sigma about the origin of the body frame. Hence
m = e^(2 alpha), com = t, and the second moment about the centre of mass is m V V'. The rotational inertia of
a second moment is tr(Sigma) 1 - Sigma. Units: alpha [log sqrt(kg)], d [log m], s and t [m].
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from prime_ros.estimation.estimate import BodyInertia
from prime_ros.exceptions import RobotError

Array = NDArray[np.float64]

PARAMETER_COUNT = 10
_ALPHA = 0
_D = slice(1, 4)
_SHEAR_ENTRIES = ((4, (0, 1)), (5, (1, 2)), (6, (0, 2)))  # parameter, entry of V
_T = slice(7, 10)


def from_inertia(inertia: pin.Inertia) -> Array:
    """Log-Cholesky parameters, shape (10,), of an inertia.

    Raises RobotError if the inertia is not physically consistent: mass not positive, or principal moments
    that violate the triangle inequality. (Point mass, rod, plate are on the boundary: no finite parameters.)
    """
    pseudo = _pseudo_inertia(inertia)
    try:
        # Cholesky gives the lower factor; reversing rows and columns turns it into the upper one.
        upper = np.linalg.cholesky(pseudo[::-1, ::-1])[::-1, ::-1]
    except np.linalg.LinAlgError:
        moments = np.linalg.eigvalsh(inertia.inertia)
        raise RobotError(
            f"got an inertia that no solid body has (mass {inertia.mass:g} kg, principal moments about the "
            f"com {moments} kg m^2), expected a positive mass and each moment below the sum of the others; "
            "correct the <inertial> of the link"
        ) from None
    scale = upper[3, 3]
    theta = np.full(PARAMETER_COUNT, np.nan)
    theta[_ALPHA] = np.log(scale)
    theta[_D] = np.log(np.diag(upper)[:3] / scale)
    for k, entry in _SHEAR_ENTRIES:
        theta[k] = upper[entry] / scale
    theta[_T] = upper[:3, 3] / scale
    return theta


def to_inertia(theta: Array) -> pin.Inertia:
    """Inertia of log-Cholesky parameters, shape (10,)."""
    body = body_inertia(theta)
    return pin.Inertia(body.mass, body.com, body.inertia_com)


def body_inertia(theta: Array) -> BodyInertia:
    """Mass, centre of mass and rotational inertia about it of log-Cholesky parameters, shape (10,)."""
    mass = np.exp(2.0 * theta[_ALPHA])
    shape = _shape_factor(theta)
    inertia_com = mass * _rotational(shape @ shape.T)
    return BodyInertia(mass=float(mass), com=theta[_T].copy(), inertia_com=inertia_com)


def body_inertia_jacobian(theta: Array) -> Array:
    """Jacobian of (mass, com, inertia_com row by row) with respect to theta, shape (13, 10)."""
    mass = np.exp(2.0 * theta[_ALPHA])
    shape = _shape_factor(theta)
    jacobian = np.zeros((13, PARAMETER_COUNT))
    jacobian[0, _ALPHA] = 2.0 * mass
    jacobian[1:4, _T] = np.eye(3)
    jacobian[4:, _ALPHA] = 2.0 * mass * _rotational(shape @ shape.T).ravel()
    for k, d_shape in _shape_factor_derivatives(theta):
        jacobian[4:, k] = mass * _rotational(d_shape @ shape.T + shape @ d_shape.T).ravel()
    return jacobian


def body_inertia_covariance(theta: Array, covariance: Array) -> Array:
    """Of (mass, com, inertia_com row by row), to first order, from that of theta; shape (13, 13)."""
    jacobian = body_inertia_jacobian(theta)
    return np.asarray(jacobian @ covariance @ jacobian.T)


def body_inertia_std(theta: Array, covariance: Array) -> BodyInertia:
    """Standard deviations, to first order, from the covariance of theta, shape (10, 10)."""
    variance = np.diag(body_inertia_covariance(theta, covariance))
    std = np.sqrt(np.maximum(variance, 0.0))  # rounding may leave a zero variance slightly negative
    return BodyInertia(mass=float(std[0]), com=std[1:4], inertia_com=std[4:].reshape(3, 3))


def dynamic_parameters(theta: Array) -> Array:
    """(m, m com, Ixx, Ixy, Iyy, Ixz, Iyz, Izz), I about the body origin: Pinocchio's order, shape (10,)."""
    factor = _cholesky_factor(theta)
    return _dynamic_parameters_of(factor @ factor.T)


def dynamic_parameters_jacobian(theta: Array) -> Array:
    """Jacobian of `dynamic_parameters` with respect to theta, shape (10, 10), invertible."""
    factor = _cholesky_factor(theta)
    scale = np.exp(theta[_ALPHA])
    d_factors = [(_ALPHA, factor)]
    for k, d_shape in _shape_factor_derivatives(theta):
        d_factors.append((k, scale * np.pad(d_shape, (0, 1))))
    for k in range(3):
        d_factor = np.zeros((4, 4))
        d_factor[k, 3] = scale
        d_factors.append((_T.start + k, d_factor))
    jacobian = np.full((PARAMETER_COUNT, PARAMETER_COUNT), np.nan)
    for k, d_factor in d_factors:
        jacobian[:, k] = _dynamic_parameters_of(d_factor @ factor.T + factor @ d_factor.T)
    return jacobian


def _shape_factor(theta: Array) -> Array:
    """V, shape (3, 3) [m]."""
    shape = np.diag(np.exp(theta[_D]))
    for k, entry in _SHEAR_ENTRIES:
        shape[entry] = theta[k]
    return shape


def _shape_factor_derivatives(theta: Array) -> list[tuple[int, Array]]:
    """(k, dV/dtheta_k) for the parameters that V depends on."""
    entries = [(_D.start + i, (i, i), np.exp(theta[_D.start + i])) for i in range(3)]
    entries += [(k, entry, 1.0) for k, entry in _SHEAR_ENTRIES]
    derivatives = []
    for k, entry, slope in entries:
        d_shape = np.zeros((3, 3))
        d_shape[entry] = slope
        derivatives.append((k, d_shape))
    return derivatives


def _cholesky_factor(theta: Array) -> Array:
    """U, shape (4, 4)."""
    factor = np.eye(4)
    factor[:3, :3] = _shape_factor(theta)
    factor[:3, 3] = theta[_T]
    return np.exp(theta[_ALPHA]) * factor


def _pseudo_inertia(inertia: pin.Inertia) -> Array:
    """P, shape (4, 4)."""
    mass, com = inertia.mass, inertia.lever
    about_com = 0.5 * np.trace(inertia.inertia) * np.eye(3) - inertia.inertia  # inverse of `_rotational`
    pseudo = np.full((4, 4), np.nan)
    pseudo[:3, :3] = about_com + mass * np.outer(com, com)
    pseudo[:3, 3] = pseudo[3, :3] = mass * com
    pseudo[3, 3] = mass
    return pseudo


def _rotational(second_moment: Array) -> Array:
    """Rotational inertia of a second moment of mass, shape (3, 3), about the same point."""
    return np.trace(second_moment) * np.eye(3) - second_moment


def _dynamic_parameters_of(pseudo: Array) -> Array:
    """Linear map from a pseudo-inertia, shape (4, 4), to the dynamic parameters, shape (10,)."""
    inertia = _rotational(pseudo[:3, :3])
    return np.concatenate([pseudo[3:, 3], pseudo[:3, 3], inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])
